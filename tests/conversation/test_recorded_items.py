"""Items and images of results that the client records."""

from __future__ import annotations

import base64
import io

import pytest
from PIL import Image

from efrit_budget.errors import InvalidParamsError
from tests.conversation.client import Client

ITEM = '{"name":"an item with some words in it","number":%d}'


def picture(colour: str, size: tuple[int, int] = (300, 200)) -> str:
    """Return an image of one colour in Base64."""
    written = io.BytesIO()
    Image.new("RGB", size, colour).save(written, "PNG")
    return base64.b64encode(written.getvalue()).decode()


def test_pages_end_where_items_end_and_are_together_the_whole(client: Client) -> None:
    items = [ITEM % number for number in range(200)]
    text = f"[{','.join(items)}]"
    offsets = [1 + sum(len(item) + 1 for item in items[:number]) for number in range(200)]
    limit = {"arguments": {"max_tokens": 600}}
    envelope = client.record("use1", text, items=offsets, noun="records", **limit)
    pages = []
    for number in range(100):
        page, _, tail = envelope["text"].rpartition("\n§ ")
        token = envelope["data"].get("continuation_token")
        if token is None:
            # Blank lines may stand before a footer, so that it states its own tokens.
            pages.append(envelope["text"].rpartition("\n📏")[0].rstrip("\n"))
            break
        pages.append(page)
        assert page.endswith(",")
        assert "of 200 records. continuation_token" in tail
        arguments = {"continuation_token": token, "max_tokens": 600}
        params = {"name": "recall_result", "tool_use_id": f"page{number}", "arguments": arguments}
        envelope = client.call("tools/call", **params)
        assert envelope["tokens"] <= 600
    assert len(pages) > 3
    assert "".join(pages) == text


def test_items_stay_where_they_are_when_found_text_is_quoted(client: Client) -> None:
    text = "§ first\nsecond\n📏 third\n"
    client.record("use1", text, items=[0, 8, 15])
    recalled = client.call("worklog/show", handle="r1")["text"]
    assert recalled == "\\§ first\nsecond\n\\📏 third\n"
    (entry,) = client.entries()
    assert client.record("use2", text, items=[0, 8, 15])["data"]["total"] == 3
    assert entry["status"] == "success"


@pytest.mark.parametrize("items", [[5, 5], [7, 3], [0, 99]])
def test_items_that_do_not_fit_the_text_are_refused(client: Client, items: list[int]) -> None:
    with pytest.raises(InvalidParamsError, match="items: must be offsets in the text"):
        client.record("use1", "a short text", items=items)


def test_items_beside_lines_of_the_client_are_refused(client: Client) -> None:
    with pytest.raises(InvalidParamsError, match="items: cannot be given beside own_lines"):
        client.record("use1", "one\ntwo\n", items=[0, 4], own_lines=[0])


def test_images_are_shown_and_counted(client: Client) -> None:
    envelope = client.record("use1", "two colours", images=[picture("red"), picture("blue")])
    kinds = [block["type"] for block in envelope["content"]]
    assert kinds == ["image", "image", "text"]
    assert "§ image 2: PNG 300x200, sha256" in envelope["text"]
    assert envelope["tokens"] >= 160


def test_images_share_the_allowance(client: Client) -> None:
    large = [picture(colour, (1500, 1000)) for colour in ("red", "blue", "green")]
    envelope = client.record("use1", "", images=large, arguments={"max_tokens": 1_000})
    assert len(envelope["content"]) == 4
    assert envelope["tokens"] <= 1_000


def test_other_images_with_the_same_text_are_not_the_same_result(client: Client) -> None:
    client.record("use1", "", images=[picture("red")])
    same = client.record("use2", "", images=[picture("red")])
    other = client.record("use3", "", images=[picture("blue")])
    assert same["text"].startswith("§ Same as r1")
    assert "content" not in same
    assert len(other["content"]) == 2


def test_what_is_no_image_is_told_in_its_line(client: Client) -> None:
    broken = base64.b64encode(b"nothing").decode()
    envelope = client.record("use1", "text", images=[broken])
    assert envelope["text"].startswith("§ image 1: not shown: it is not an image of a known kind")
    with pytest.raises(InvalidParamsError, match=r"images\.0: is not Base64"):
        client.record("use2", "text", images=["no base64"])
