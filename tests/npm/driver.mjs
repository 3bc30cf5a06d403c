// Makes calls with the ecosystem's own client, for tests.lab.npm_client.
//
// One JSON line on standard input is one call, one JSON line on standard output its outcome, in that
// order; the calls share this process, and so the client's cache of bodies. It ends with its input.
//
//   call     { url, method, request, useCache?, asStream? }
//   outcome  { response }                 what the client resolved to; null for undefined
//            { errorText, errorData }     a TypedResponseError: the gateway answered an error
//            { thrown }                   anything else: no answer was had, or the client crashed

import { createInterface } from 'node:readline';
import { TypedRequest, TypedResponseError } from '@api.global/typedrequest';

// The client waits a minute for headers and without end for a body.
const CALL_LIMIT_MS = 20_000;

// The client tells its errors on the console; standard output is for outcomes.
console.log = console.error;

function fire({ url, method, request, useCache = false, asStream = false }) {
  const typedRequest = new TypedRequest(url, method);
  // What the client's VirtualStream sends: this object, without a correlation.
  if (asStream) return typedRequest.postTrObject({ method, request, response: null });
  return typedRequest.fire(request, useCache);
}

async function within(limitMs, promise) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no outcome within ${limitMs} ms`)), limitMs);
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
  }
}

async function outcomeOf(call) {
  try {
    return { response: (await within(CALL_LIMIT_MS, fire(call))) ?? null };
  } catch (error) {
    if (error instanceof TypedResponseError) {
      return { errorText: error.errorText, errorData: error.errorData };
    }
    return { thrown: String(error) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await outcomeOf(JSON.parse(line)))}\n`);
}
// A call that was given up may still hold the process.
process.exit(0);
