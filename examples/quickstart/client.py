#!/usr/bin/env python3
"""Chats that share a long system prompt, through the gateway.

    pip install openai
    python client.py [BASE_URL]     # default $OPENAI_BASE_URL or http://127.0.0.1:10000/v1

Nothing here knows of warmpath: it is the OpenAI SDK with another base URL.
With PREFIX_AWARE routing every question goes to the replica that has the
system prompt in its cache, so all but the first show cached tokens.
"""

import os
import sys
import time

from openai import OpenAI

DEFAULT_BASE_URL = "http://127.0.0.1:10000/v1"

# Some 1,700 tokens, so that what is cached shows.
SYSTEM_PROMPT = "You answer questions about the parts catalogue of a bicycle workshop.\n" + "".join(
    f"Part {1000 + n}: fits wheel size {20 + n % 9}, stock {n * 7 % 40}, shelf {chr(65 + n % 26)}{n % 12}.\n"
    for n in range(100)
)

QUESTIONS = [
    "Which parts fit wheel size 24?",
    "What is on shelf C2?",
    "How many of part 1042 are in stock?",
    "Which parts are out of stock?",
]


def ask(client, question):
    """Streams one answer; returns who served it, its usage and the time to the first token."""
    started = time.monotonic()
    raw = client.chat.completions.with_raw_response.create(
        model="demo",
        messages=[
            {"role": "system", "content": SYSTEM_PROMPT},
            {"role": "user", "content": question},
        ],
        max_tokens=16,
        stream=True,
        stream_options={"include_usage": True},
    )
    first_token, usage = None, None
    with raw.parse() as stream:
        for chunk in stream:
            if first_token is None and chunk.choices and chunk.choices[0].delta.content:
                first_token = time.monotonic() - started
            usage = chunk.usage or usage
    return raw.headers.get("x-replica", "?"), usage, first_token


def main():
    base_url = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("OPENAI_BASE_URL", DEFAULT_BASE_URL)
    client = OpenAI(base_url=base_url, api_key=os.environ.get("OPENAI_API_KEY", "unused"))
    print(f"{'replica':<22} {'prompt':>6} {'cached':>6} {'first token':>12}  question")
    for question in QUESTIONS:
        replica, usage, first_token = ask(client, question)
        cached = usage.prompt_tokens_details.cached_tokens
        print(f"{replica:<22} {usage.prompt_tokens:>6} {cached:>6} {first_token * 1000:>9.0f} ms  {question}")


if __name__ == "__main__":
    main()
