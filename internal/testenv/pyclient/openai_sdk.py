#!/usr/bin/env python3
"""Proves that the real OpenAI Python SDK works unchanged through a gateway.

    openai_sdk.py BASE_URL [--stats-url URL] [--affinity]

BASE_URL ends in /v1. Behind it are bench/replica servers that serve only the
model "demo". The last line is "N passed, N failed"; the exit code is 1 when a
test failed.
"""

import argparse
import asyncio
import json
import sys
import time
import unittest
import urllib.request

import openai

MODEL = "demo"
OPTIONS = argparse.Namespace()

# Shared by several tests and longer than the shortest prefix length, so that
# prefix routing applies and a second request can hit.
LONG_SYSTEM = "You answer questions about the parts catalogue of a bicycle workshop. " * 100


def sync_client(**options):
    options = {"max_retries": 0, "timeout": 30} | options
    return openai.OpenAI(base_url=OPTIONS.base_url, api_key="unused", **options)


def async_client():
    return openai.AsyncOpenAI(base_url=OPTIONS.base_url, api_key="unused", max_retries=0, timeout=60)


def messages(question, system=LONG_SYSTEM):
    return [{"role": "system", "content": system}, {"role": "user", "content": question}]


def fleet_stats():
    with urllib.request.urlopen(f"{OPTIONS.stats_url}/fleet/stats", timeout=10) as response:
        return json.load(response)


def total(field):
    return sum(replica[field] for replica in fleet_stats())


def wait_for(condition, seconds=10):
    """Polls, because the gateway tells an upstream that a client left only a moment later."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


class Case(unittest.TestCase):
    def setUp(self):
        self.client = sync_client()
        self.addCleanup(self.client.close)

    def assert_usage(self, usage, completion_tokens):
        self.assertGreater(usage.prompt_tokens, 0)
        self.assertEqual(usage.completion_tokens, completion_tokens)
        self.assertEqual(usage.total_tokens, usage.prompt_tokens + completion_tokens)
        self.assertGreaterEqual(usage.prompt_tokens_details.cached_tokens, 0)


class Chat(Case):
    def test_plain(self):
        r = self.client.chat.completions.create(model=MODEL, messages=messages("plain"), max_tokens=5)
        self.assertEqual(r.object, "chat.completion")
        self.assertEqual(r.model, MODEL)
        self.assertEqual(r.choices[0].message.role, "assistant")
        self.assertEqual(r.choices[0].message.content, " the sun has set and")
        self.assertEqual(r.choices[0].finish_reason, "length")
        self.assert_usage(r.usage, 5)

    def test_stream_with_usage(self):
        stream = self.client.chat.completions.create(
            model=MODEL, messages=messages("stream"), max_tokens=5, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        self.assertEqual(text, " the sun has set and")
        self.assertEqual([c.choices[0].finish_reason for c in chunks if c.choices][-1], "length")
        self.assert_usage(chunks[-1].usage, 5)

    def test_stream_without_usage(self):
        stream = self.client.chat.completions.create(
            model=MODEL, messages=messages("stream"), max_tokens=3, stream=True
        )
        chunks = list(stream)
        self.assertTrue(all(c.usage is None for c in chunks))
        self.assertTrue(all(c.choices for c in chunks))

    def test_stream_helper(self):
        with self.client.chat.completions.stream(model=MODEL, messages=messages("helper")) as stream:
            deltas = [e.delta for e in stream if e.type == "content.delta"]
            final = stream.get_final_completion()
        self.assertEqual("".join(deltas), final.choices[0].message.content)
        self.assertEqual(final.choices[0].finish_reason, "stop")

    def test_stream_arrives_piece_by_piece(self):
        # 2 s in all, so that a busy client that is late still sees the difference.
        headers = {"x-replica-token-ms": "200", "x-replica-tokens": "10"}
        started, first = time.monotonic(), None
        stream = self.client.chat.completions.create(
            model=MODEL, messages=messages("slow"), stream=True, extra_headers=headers
        )
        for chunk in stream:
            if first is None and chunk.choices and chunk.choices[0].delta.content:
                first = time.monotonic() - started
        whole = time.monotonic() - started
        self.assertGreaterEqual(whole - first, 0.3, "the stream was buffered on its way")

    def test_content_parts_and_unicode(self):
        parts = [{"type": "text", "text": "Fahrräder 自転車 🚲"}]
        r = self.client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": parts}], max_completion_tokens=2
        )
        self.assertEqual(r.usage.completion_tokens, 2)

    def test_tools_are_accepted(self):
        tool = {"type": "function", "function": {"name": "stock", "parameters": {"type": "object", "properties": {}}}}
        r = self.client.chat.completions.create(model=MODEL, messages=messages("tools"), tools=[tool], max_tokens=1)
        self.assertEqual(r.usage.completion_tokens, 1)

    def test_large_body(self):
        big = "0123456789abcdef" * 16_384  # 256 KiB
        r = self.client.chat.completions.create(model=MODEL, messages=messages("big", big), max_tokens=1)
        self.assertGreater(r.usage.prompt_tokens, 65_000)

    def test_replica_is_named(self):
        raw = self.client.chat.completions.with_raw_response.create(
            model=MODEL, messages=messages("raw"), max_tokens=1
        )
        self.assertRegex(raw.headers["x-replica"], r"^\S+:\d+$")
        self.assertEqual(raw.parse().usage.completion_tokens, 1)

    def test_prompt_cache_key(self):
        system = f"catalogue {time.time_ns()} " + LONG_SYSTEM
        raws = [
            self.client.chat.completions.with_raw_response.create(
                model=MODEL, messages=messages(q, system), max_tokens=1, prompt_cache_key="tenant-a"
            )
            for q in ("first question", "another question", "the third question")
        ]
        cached = [raw.parse().usage.prompt_tokens_details.cached_tokens for raw in raws]
        self.assertEqual(cached[0], 0)
        if OPTIONS.affinity:
            self.assertEqual(len({raw.headers["x-replica"] for raw in raws}), 1)
            self.assertGreater(min(cached[1:]), 1700)

    def test_cache_salt_separates(self):
        system = f"catalogue {time.time_ns()} " + LONG_SYSTEM
        for salt in ("salt-a", "salt-b"):
            r = self.client.chat.completions.create(
                model=MODEL, messages=messages("q", system), max_tokens=1, extra_body={"cache_salt": salt}
            )
            self.assertEqual(r.usage.prompt_tokens_details.cached_tokens, 0, "a cache was shared across salts")


class Completions(Case):
    def test_plain(self):
        r = self.client.completions.create(model=MODEL, prompt=LONG_SYSTEM, max_tokens=3)
        self.assertEqual(r.choices[0].text, " the sun has")
        self.assert_usage(r.usage, 3)

    def test_stream(self):
        stream = self.client.completions.create(
            model=MODEL, prompt=LONG_SYSTEM, max_tokens=3, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
        self.assertEqual("".join(c.choices[0].text for c in chunks if c.choices), " the sun has")
        self.assert_usage(chunks[-1].usage, 3)


class Responses(Case):
    def test_plain(self):
        r = self.client.responses.create(
            model=MODEL, instructions=LONG_SYSTEM, input="plain", max_output_tokens=3
        )
        self.assertEqual(r.output_text, " the sun has")
        self.assertEqual(r.status, "completed")
        self.assertEqual(r.usage.output_tokens, 3)
        self.assertGreaterEqual(r.usage.input_tokens_details.cached_tokens, 0)

    def test_input_items(self):
        r = self.client.responses.create(model=MODEL, input=messages("items"), max_output_tokens=1)
        self.assertEqual(r.usage.output_tokens, 1)

    def test_stream(self):
        events = list(
            self.client.responses.create(
                model=MODEL, instructions=LONG_SYSTEM, input="stream", max_output_tokens=3, stream=True
            )
        )
        types = [e.type for e in events]
        self.assertEqual(types[0], "response.created")
        self.assertEqual(types[-1], "response.completed")
        self.assertEqual([e.sequence_number for e in events], list(range(len(events))))
        self.assertEqual("".join(e.delta for e in events if e.type == "response.output_text.delta"), " the sun has")
        self.assertEqual(events[-1].response.output_text, " the sun has")

    def test_stream_helper(self):
        with self.client.responses.stream(model=MODEL, input="helper", max_output_tokens=2) as stream:
            list(stream)
            self.assertEqual(stream.get_final_response().output_text, " the sun")


class Others(Case):
    def test_models(self):
        self.assertIn(MODEL, [m.id for m in self.client.models.list()])

    def test_embeddings(self):
        r = self.client.embeddings.create(model=MODEL, input=["one text", "another"])
        self.assertTrue(r.data[0].embedding)


class Errors(Case):
    """Upstream errors reach the program as the SDK's own exceptions, with the upstream's words."""

    def ask(self, model=MODEL, client=None, **options):
        return (client or self.client).chat.completions.create(
            model=model, messages=messages("error"), max_tokens=1, **options
        )

    def assert_status(self, kind, status, **options):
        with self.assertRaises(kind) as caught:
            self.ask(extra_headers={"x-replica-status": str(status)}, **options)
        self.assertEqual(caught.exception.status_code, status)
        self.assertIn("as x-replica-status asked", str(caught.exception))

    def test_statuses(self):
        for kind, status in (
            (openai.BadRequestError, 400),
            (openai.AuthenticationError, 401),
            (openai.PermissionDeniedError, 403),
            (openai.ConflictError, 409),
            (openai.UnprocessableEntityError, 422),
            (openai.RateLimitError, 429),
            (openai.InternalServerError, 500),
            (openai.InternalServerError, 503),
        ):
            with self.subTest(status=status):
                self.assert_status(kind, status)

    def test_503_of_a_stream(self):
        self.assert_status(openai.InternalServerError, 503, stream=True)

    def test_sdk_retries_reach_the_upstream(self):
        before = total("started")
        with sync_client(max_retries=1) as client:
            self.assert_status(openai.InternalServerError, 503, client=client)
        self.assertGreaterEqual(total("started") - before, 2)

    def test_unknown_model(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.ask(model="no-such-model")
        self.assertIn("The model `no-such-model` does not exist.", str(caught.exception))
        self.assertEqual(caught.exception.body["param"], "model")

    def test_unknown_path(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.post("/no/such/path", body={}, cast_to=object)
        self.assertIn("no such path", str(caught.exception))

    def test_bad_request(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(model=MODEL, messages=[])
        self.assertIn("field messages: required", str(caught.exception))

    def test_body_that_is_not_json(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.post("/chat/completions", content=b'{"model": "demo", ', cast_to=object)
        self.assertIn("not JSON", str(caught.exception))

    def test_timeout(self):
        with self.assertRaises(openai.APITimeoutError):
            self.ask(timeout=0.3, extra_headers={"x-replica-delay-ms": "5000"})

    def test_stream_cut_in_the_middle(self):
        # Not at once: Envoy answers 502 while the response's headers are with warmpath.
        headers = {"x-replica-reset": "mid", "x-replica-tokens": "10", "x-replica-token-ms": "150"}
        stream = self.ask(stream=True, extra_headers=headers)
        pieces = []
        with self.assertRaises(Exception) as caught:
            for chunk in stream:
                pieces.append(chunk.choices[0].delta.content)
        self.assertNotIsInstance(caught.exception, openai.APIStatusError)
        self.assertEqual("".join(pieces), " the sun has set and")


class Concurrency(Case):
    def test_async_20_at_once(self):
        async def one(client, n):
            if n % 2:
                r = await client.chat.completions.create(model=MODEL, messages=messages(f"q{n}"), max_tokens=n)
                return r.usage.completion_tokens
            stream = await client.chat.completions.create(
                model=MODEL, messages=messages(f"q{n}"), max_tokens=n, stream=True
            )
            return len([c async for c in stream if c.choices and c.choices[0].delta.content])

        async def all_of_them():
            async with async_client() as client:
                return await asyncio.gather(*(one(client, n) for n in range(1, 21)))

        self.assertEqual(asyncio.run(all_of_them()), list(range(1, 21)))

    def test_client_leaves_a_stream(self):
        aborted = total("aborted")
        stream = self.client.chat.completions.create(
            model=MODEL, messages=messages("leave"), stream=True, extra_headers={"x-replica-hold": "1"}
        )
        next(iter(stream))
        self.assertTrue(wait_for(lambda: total("held") == 1))
        stream.close()
        self.assertTrue(wait_for(lambda: total("outstanding") == 0), "the replica still works for a client that left")
        self.assertEqual(total("aborted"), aborted + 1)


def main():
    parser = argparse.ArgumentParser(description="The OpenAI SDK against a gateway.")
    parser.add_argument("base_url", help="the gateway, with /v1")
    parser.add_argument("--stats-url", help="where a replica answers /fleet/stats; default: the gateway without /v1")
    parser.add_argument("--affinity", action="store_true", help="the gateway routes by prefix: demand cache hits")
    parser.parse_args(namespace=OPTIONS)
    OPTIONS.base_url = OPTIONS.base_url.rstrip("/")
    OPTIONS.stats_url = (OPTIONS.stats_url or OPTIONS.base_url.removesuffix("/v1")).rstrip("/")
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    # A subtest counts as a failure of its own, its test as one test run.
    failed = len({str(getattr(test, "test_case", test)) for test, _ in result.failures + result.errors})
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed or not result.testsRun else 0)


if __name__ == "__main__":
    main()
