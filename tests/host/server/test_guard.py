"""Who may ask: the token, the host's name, pages of other sites; and the headers of the page."""

import re
from pathlib import Path

import pytest
import slipstick
from slipstick.errors import InputError
from slipstick.server.guard import is_loopback, read_token
from slipstick.server.serving import check_public

TOKEN = "a-token-of-the-tests"
PAGE = Path(slipstick.__file__).parent / "server" / "page"


def test_requests_need_the_token(guarded, bodies, images) -> None:
    place, body = "/v2/models/digits/infer", bodies.json(images[:1])
    wrong = ("", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"bearer{TOKEN}")
    for authorization in wrong:
        response = guarded.post(place, json=body, headers={"Authorization": authorization})
        assert response.status_code == 401 and "token" in response.json()["error"]
        assert response.headers["www-authenticate"] == "Bearer"
    for secret in ("/metrics", "/v2", "/page/status", "/v2/models/digits", "/nowhere"):
        assert guarded.get(secret).status_code == 401, secret
    for free in ("/", "/page/files/page.js", "/v2/health/live", "/v2/health/ready"):
        assert guarded.get(free).status_code == 200, free
    good = {"Authorization": f"Bearer {TOKEN}"}
    assert guarded.post(place, json=body, headers=good).status_code == 200
    assert guarded.get("/metrics", headers=good).status_code == 200
    # who has it may call the server by any name
    assert guarded.get("/v2", headers={**good, "Host": "boards.example"}).status_code == 200


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:80", "[::1]:8000"])
def test_names_of_this_machine(client, host: str) -> None:
    assert client.get("/v2", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["boards.example", "localhost.example:80", "192.168.1.7", ""])
def test_other_names(client, host: str) -> None:
    response = client.get("/v2", headers={"Host": host})
    assert response.status_code == 421 and "loopback" in response.json()["error"]


def test_pages_of_other_sites(client, bodies, images) -> None:
    headers = {"Sec-Fetch-Site": "cross-site"}
    body = bodies.json(images[:1])
    response = client.post("/v2/models/digits/infer", json=body, headers=headers)
    assert response.status_code == 403
    assert client.get("/", headers=headers).status_code == 200


def test_the_page_has_a_policy(client) -> None:
    response = client.get("/")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert client.get("/page/files/nothing").status_code == 404
    assert client.get("/page/files/..%2f__init__.py").status_code == 404


def test_the_page_loads_nothing_from_elsewhere() -> None:
    for path in PAGE.iterdir():
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//[a-z]+\.|@import|url\((?!\"#)", text), path
    html = (PAGE / "index.html").read_text("utf-8")
    assert "style=" not in html and not re.search(r"\son[a-z]+=", html)
    assert "innerHTML" not in (PAGE / "page.js").read_text("utf-8")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.4", False),
        ("board.example", False),
        ("", False),
    ],
)
def test_public_hosts_need_a_token(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
    check_public(host, TOKEN)
    if loopback:
        check_public(host, None)
        return
    with pytest.raises(InputError, match=r"--host .*opens the server to other machines"):
        check_public(host, None)


def test_tokens_of_files_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLIPSTICK_TOKEN", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("SLIPSTICK_TOKEN", TOKEN)
    assert read_token(None) == TOKEN
    monkeypatch.setenv("SLIPSTICK_TOKEN", "")
    with pytest.raises(InputError, match="variable SLIPSTICK_TOKEN must hold one word"):
        read_token(None)
    path = tmp_path / "token"
    with pytest.raises(InputError, match=r"--token .*cannot be read: No such file"):
        read_token(path)
    path.write_text(f"{TOKEN}\n")
    assert read_token(path) == TOKEN
    for text in ("short", "two words that are long", "s" * 5000, "ünter-den-linden-12345", ""):
        path.write_text(text)
        with pytest.raises(InputError, match="at least 16 ASCII letters"):
            read_token(path)
