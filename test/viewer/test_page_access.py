"""Access to a page: token, origin and host of each request; a view-only page moves nothing."""

from http.client import HTTPConnection
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from browser import Client, Panel
from test_viewer import LIMITS, NAMES, URDF, port_of, start
from websockets.exceptions import InvalidStatus

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.viewer import ArmPage


@pytest.fixture(scope="module")
def control():
    with start(control=True) as page:
        yield page


def root(page):
    return f"http://127.0.0.1:{port_of(page)}"


def test_the_address_of_each_page_with_control_has_another_token(control):
    token = urlsplit(control.url).path
    assert len(token) > 20
    with start(interactive=True) as other:
        assert urlsplit(other.url).path not in ("", token)
    with urlopen(control.url) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("path", ["", "/", "/index.html", "/wrong", "/?token={token}"])
def test_a_request_without_the_token_is_rejected(control, path, caplog):
    """Neither the page nor a connection is opened; the reason is shown to the user."""
    address = root(control) + path.format(token=urlsplit(control.url).path[1:])
    with pytest.raises(HTTPError, match="403") as error:
        urlopen(address)
    assert b"open the whole address that was printed" in error.value.read()
    assert error.value.headers["X-Frame-Options"] == "DENY"
    with pytest.raises(InvalidStatus, match="403"):
        Client(address)
    assert urlsplit(control.url).path[1:] not in caplog.text


def test_a_connection_with_the_token_but_from_another_site_is_rejected(control):
    for origin in ("http://evil.test", "null", "http://localhost:1", f"{root(control)}.evil.test"):
        with pytest.raises(InvalidStatus, match="403"):
            Client(control.url, origin)
    with Client(control.url, root(control)) as client:
        assert client.until_quiet(0.2)


@pytest.mark.parametrize("host", ["evil.test", "127.0.0.1.evil.test", "", "a b"])
def test_a_request_under_a_foreign_host_name_is_rejected(control, host):
    """As after DNS rebinding: the name of another site resolves to 127.0.0.1."""
    connection = HTTPConnection("127.0.0.1", port_of(control))
    connection.request("GET", urlsplit(control.url).path, headers={"Host": host})
    assert connection.getresponse().status == 403
    connection.close()


def test_a_view_only_page_states_it_and_rejects_controls():
    with start(control_hint="start it with --control") as page:
        assert urlsplit(page.url).path == ""
        with Panel(page.url) as panel:
            words = "view only, the arm cannot be moved: start it with --control"
            panel.wait_for(lambda: words in panel.text, "no line")
        for add in (page.add_controls, lambda: page.on_link_drag(print)):
            with pytest.raises(InvalidValue, match="page = view-only; expected"):
                add()


def test_a_page_with_control_does_not_call_itself_view_only(control):
    with Panel(control.url) as panel:
        panel.wait_for(lambda: "tool frame" in panel.text, "no panel")
        assert "view only" not in panel.text


def test_only_an_embedded_page_may_be_framed_by_a_notebook_of_this_machine():
    options = {"limits": LIMITS, "tool_frame": "tool", "port": 0}
    with ArmPage(URDF, NAMES, embedded=True, **options) as page:
        headers = urlopen(page.url).headers
        assert "X-Frame-Options" not in headers
        rules = dict(r.split(" ", 1) for r in headers["Content-Security-Policy"].split("; "))
        assert rules["frame-ancestors"].split()[:2] == ["http://localhost:*", "http://127.0.0.1:*"]
        assert f'<iframe src="{page.url}"' in page._repr_html_()
    with ArmPage(URDF, NAMES, **options) as page:
        assert "iframe" not in page._repr_html_()
        assert page.url in page._repr_html_()
