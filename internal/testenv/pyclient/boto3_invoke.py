#!/usr/bin/env python3
"""Proves that boto3's SageMaker runtime client works unchanged through a gateway.

    boto3_invoke.py BASE_URL [--affinity]

BASE_URL has no path. Behind it are bench/replica servers. The last line is
"N passed, N failed"; the exit code is 1 when a test failed.
"""

import argparse
import json
import sys
import time
import unittest

import boto3
import botocore.config
import botocore.exceptions

OPTIONS = argparse.Namespace()
LONG = "The parts catalogue of a bicycle workshop lists wheels, chains and bells. " * 100
MODEL = "demo"


def new_client():
    """The signature is made as for AWS, with made-up keys; nobody here checks it."""
    return boto3.client(
        "sagemaker-runtime",
        region_name="us-east-1",
        endpoint_url=OPTIONS.base_url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=botocore.config.Config(retries={"total_max_attempts": 1}, read_timeout=30),
    )


def chat(question, system=LONG, **fields):
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    return json.dumps({"model": MODEL, "messages": messages, "max_tokens": 4} | fields)


class Invoke(unittest.TestCase):
    def setUp(self):
        self.client = new_client()
        self.addCleanup(self.client.close)

    def invoke(self, body, **parameters):
        r = self.client.invoke_endpoint(
            EndpointName="demo", ContentType="application/json", Body=body, **parameters
        )
        return r["ResponseMetadata"]["HTTPHeaders"], json.loads(r["Body"].read())

    def add_header(self, name, value, event="before-sign"):
        """Adds a header as a program does whose SDK has no parameter for it."""

        def hook(request=None, params=None, **_):
            (request.headers if request is not None else params["headers"])[name] = value

        self.client.meta.events.register(f"{event}.sagemaker-runtime", hook)

    def assert_affinity(self, answers):
        headers = [h for h, _ in answers]
        cached = [body["usage"]["prompt_tokens_details"]["cached_tokens"] for _, body in answers]
        self.assertEqual(cached[0], 0)
        if OPTIONS.affinity:
            self.assertEqual(len({h["x-replica"] for h in headers}), 1)
            self.assertGreater(min(cached[1:]), 1700)

    def test_chat_body(self):
        headers, body = self.invoke(chat("plain"))
        self.assertEqual(body["choices"][0]["message"]["content"], " the sun has set")
        self.assertIn("x-replica", headers)

    def test_native_body(self):
        _, body = self.invoke(json.dumps({"inputs": LONG, "parameters": {"max_new_tokens": 2}}))
        self.assertEqual(body["generated_text"], " the sun")

    def test_text_body(self):
        r = self.client.invoke_endpoint(EndpointName="demo", ContentType="text/plain", Body=LONG.encode())
        self.assertIn("generated_text", json.loads(r["Body"].read()))

    def test_prefix_aware_id_parameter(self):
        if "PrefixAwareId" not in self.client.meta.service_model.operation_model("InvokeEndpoint").input_shape.members:
            self.fail("this boto3 has no PrefixAwareId: see requirements.txt")
        salt = f"{time.time_ns()} "
        self.assert_affinity(
            [self.invoke(chat(f"question {n}", salt + LONG), PrefixAwareId="tenant-a") for n in range(3)]
        )

    def test_prefix_aware_id_by_event_hook(self):
        for event in ("before-sign", "before-call"):
            with self.subTest(event=event):
                self.client = new_client()
                self.addCleanup(self.client.close)
                self.add_header("X-Amzn-SageMaker-Prefix-Aware-Id", "tenant-b", event)
                salt = f"{time.time_ns()} "
                self.assert_affinity([self.invoke(chat(f"question {n}", salt + LONG)) for n in range(3)])

    def test_inference_component_and_session(self):
        _, body = self.invoke(chat("component"), InferenceComponentName="adapter-1", CustomAttributes="a=1")
        self.assertEqual(body["usage"]["completion_tokens"], 4)

    def test_response_stream(self):
        r = self.client.invoke_endpoint_with_response_stream(
            EndpointName="demo", ContentType="application/json", Body=chat("stream", stream=True)
        )
        sse = b"".join(part["PayloadPart"]["Bytes"] for part in r["Body"]).decode()
        events = [line.removeprefix("data: ") for line in sse.splitlines() if line.startswith("data: ")]
        self.assertEqual(events[-1], "[DONE]")
        deltas = [c["delta"].get("content", "") for e in events[:-1] for c in json.loads(e)["choices"]]
        self.assertEqual("".join(deltas), " the sun has set")

    def test_response_stream_arrives_piece_by_piece(self):
        self.add_header("x-replica-token-ms", "50")
        self.add_header("x-replica-tokens", "10")
        r = self.client.invoke_endpoint_with_response_stream(
            EndpointName="demo", ContentType="application/json", Body=chat("slow", stream=True)
        )
        times = [time.monotonic() for _ in r["Body"]]
        self.assertGreaterEqual(times[-1] - times[0], 0.3, "the stream was buffered on its way")

    def test_upstream_errors(self):
        for status in (400, 424, 503):
            with self.subTest(status=status):
                self.client = new_client()
                self.addCleanup(self.client.close)
                self.add_header("x-replica-status", str(status))
                with self.assertRaises(botocore.exceptions.ClientError) as caught:
                    self.invoke(chat("error"))
                self.assertEqual(caught.exception.response["ResponseMetadata"]["HTTPStatusCode"], status)

    def test_body_that_is_not_json(self):
        with self.assertRaises(botocore.exceptions.ClientError) as caught:
            self.invoke(b'{"inputs": ')
        self.assertEqual(caught.exception.response["ResponseMetadata"]["HTTPStatusCode"], 400)


def main():
    parser = argparse.ArgumentParser(description="boto3's SageMaker runtime client against a gateway.")
    parser.add_argument("base_url", help="the gateway, without a path")
    parser.add_argument("--affinity", action="store_true", help="the gateway routes by prefix: demand cache hits")
    parser.parse_args(namespace=OPTIONS)
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    # A subtest counts as a failure of its own, its test as one test run.
    failed = len({str(getattr(test, "test_case", test)) for test, _ in result.failures + result.errors})
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed or not result.testsRun else 0)


if __name__ == "__main__":
    main()
