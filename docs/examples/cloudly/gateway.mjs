// The gateway as a control plane sees it: its calls, their failures as one kind of error, and the
// wait for a certificate.
//
// Knows no files and no relays; relay.mjs does. Never puts a token or a key into a message.

import { TypedRequest, TypedResponseError, TypedTarget } from '@api.global/typedrequest';

// The gateway answers within 10 s whatever is broken behind it.
const ANSWER_LIMIT_MS = 15_000;
// Of what stands before the gateway. All others but 2xx mean that the call is wrong, or the URL.
const PASSING_STATUSES = [429, 502, 503, 504];
const CALL_LIMIT_MS = 60_000;
// What Node calls a certificate that it does not take; waiting mends none of it.
const NOT_TRUSTED = /SELF_SIGNED_CERT|UNABLE_TO_(VERIFY|GET)|^CERT_|ALTNAME_INVALID/;
const SHORTEST_PAUSE_MS = 250;
const FAILED_CHANGES = [
  'target-invalid',
  'record-conflict',
  'zone-unavailable',
  'mutation-failed',
];

/** What went wrong, as one sentence. `mayHelpLater` is whether running again makes sense. */
export class GatewayFault extends Error {
  /** `code` is the contract's, null when no answer was had; `retryAfterMs` null when not told. */
  constructor(message, { code = null, retryAfterMs = null, mayHelpLater = false } = {}) {
    super(message);
    this.code = code;
    this.retryAfterMs = retryAfterMs;
    this.mayHelpLater = mayHelpLater;
  }
}

/** The calls of one credential: an operator's, or a relay's own. */
export class Gateway {
  #url;
  #target;
  #token;

  constructor(url, token) {
    this.#url = callsUrl(url);
    this.#target = new TypedTarget({ postMethod: (sent) => post(this.#url, sent) });
    this.#token = token;
  }

  /** The same gateway with another credential. */
  as(token) {
    return new Gateway(this.#url, token);
  }

  /**
   * Provisioning is called once. An answer that is lost may have made a credential whose token
   * nobody knows: the caller has to decide, see relay.mjs.
   */
  async provision(action, spec, options = {}) {
    const method = 'provisionGatewayClientCredential';
    const answer = await this.#once(method, { action, spec, ...options });
    const { client, apiToken } = answer;
    const hasToken = typeof apiToken === 'string' && apiToken !== '';
    const mayHaveNone = action !== 'rotate' && apiToken === null;
    if (client?.clientId !== spec.clientId || !(hasToken || mayHaveNone)) {
      throw new GatewayFault(`${method}: the answer is not one to ${action}`);
    }
    return answer;
  }

  /** Publish, replace or leave alone: safe to repeat, and repeated here. */
  async publish(ownership, record) {
    const statuses = ['managed-created', 'managed-updated', 'managed-unchanged'];
    return this.#settled(ownership, { record }, statuses);
  }

  /** Withdraw; also when there is nothing to withdraw. */
  async withdraw(ownership) {
    return this.#settled(ownership, { delete: true }, ['managed-deleted']);
  }

  /** Give the certificate up; also when there is none. */
  async release(ownership) {
    return this.#repeated('releaseGatewayClientCertificate', { ownership });
  }

  /** Ask until the certificate is there. `onWait(answer, pauseMs)` is told of every pause. */
  async waitForCertificate(ownership, { limitMs, onWait }) {
    const end = Date.now() + limitMs;
    for (;;) {
      const answer = await this.#repeated('getGatewayClientCertificate', { ownership });
      if (answer.status === 'ready') return answer.certificate;
      requireKnown(answer, ['pending', 'refused']);
      const what = answer.status === 'refused' ? `${answer.reason}: ${answer.message}` : 'pending';
      if (answer.retryAfterMs === null) throw new GatewayFault(`no certificate: ${what}`);
      const pauseMs = pause(answer.retryAfterMs);
      if (Date.now() + pauseMs > end) {
        throw new GatewayFault(
          `no certificate yet: ${what}; ask again in ${seconds(answer.retryAfterMs)}`,
          { retryAfterMs: answer.retryAfterMs, mayHelpLater: true },
        );
      }
      onWait(answer, pauseMs);
      await sleep(pauseMs);
    }
  }

  /** A change of a record until it is certain: `mutation-failed` may mean that it was made. */
  async #settled(ownership, change, statuses) {
    const end = Date.now() + CALL_LIMIT_MS;
    for (;;) {
      const answer = await this.#repeated('syncGatewayClientDnsRecord', { ownership, ...change });
      if (statuses.includes(answer.status)) return answer;
      requireKnown(answer, FAILED_CHANGES);
      const pauseMs = pause(answer.retryAfterMs ?? 0);
      if (answer.retryAfterMs === null || Date.now() + pauseMs > end) {
        const found = (answer.conflictingRecords ?? []).map(({ type, value }) => `${type} ${value}`);
        const evidence = found.length > 0 ? ` (found: ${found.join(', ')})` : '';
        throw new GatewayFault(
          `${ownership.hostname}: ${answer.status}: ${answer.message}${evidence}`,
          { retryAfterMs: answer.retryAfterMs, mayHelpLater: answer.retryAfterMs !== null },
        );
      }
      await sleep(pauseMs);
    }
  }

  /** A call that may be repeated without harm, until it is answered. */
  async #repeated(method, parameters) {
    const end = Date.now() + CALL_LIMIT_MS;
    for (;;) {
      try {
        return await this.#once(method, parameters);
      } catch (fault) {
        const pauseMs = pause(fault.retryAfterMs ?? 1000);
        if (!fault.mayHelpLater || Date.now() + pauseMs > end) throw fault;
        await sleep(pauseMs);
      }
    }
  }

  async #once(method, parameters) {
    const typedRequest = new TypedRequest(this.#target, method);
    let response;
    try {
      response = await typedRequest.fire({ apiToken: this.#token, ...parameters });
    } catch (error) {
      throw faultOf(method, error);
    }
    // The library resolves to nothing when an answer has neither a response nor an error.
    if (!response) throw new GatewayFault(`${method}: the answer holds no response`);
    return response;
  }
}

/**
 * What the library does for a URL, but for one thing: it would follow a redirect, and hand the
 * token to wherever that leads.
 */
async function post(url, sent) {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(sent),
    redirect: 'manual',
    signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
  });
  const { status } = answer;
  if (!answer.ok) {
    throw new GatewayFault(`${sent.method}: no answer from the gateway: the status is ${status}`, {
      mayHelpLater: PASSING_STATUSES.includes(status),
    });
  }
  const { response, error } = parsed(await answer.text(), sent.method);
  return { response, error };
}

/** The JSON object. The parser's own error would quote the text, which may hold a key. */
function parsed(text, method) {
  let value = null;
  try {
    value = JSON.parse(text);
  } catch {
    // Told below, with all else that is no object.
  }
  if (value === null || typeof value !== 'object') {
    throw new GatewayFault(`${method}: the answer is no JSON object; is it the gateway's URL?`);
  }
  return value;
}

/** Refuse an answer that this program does not understand: it is neither success nor "wait". */
function requireKnown({ status, retryAfterMs, message }, statuses) {
  if (!statuses.includes(status)) {
    const said = message === undefined ? '' : `: ${message}`;
    throw new GatewayFault(`an answer of an unknown status, ${JSON.stringify(status)}${said}`);
  }
  if (retryAfterMs !== null && !isWait(retryAfterMs)) {
    const said = JSON.stringify(retryAfterMs);
    throw new GatewayFault(`an answer (${status}) whose retryAfterMs is no wait, but ${said}`);
  }
}

function isWait(value) {
  return Number.isSafeInteger(value) && value >= 0;
}

function faultOf(method, error) {
  if (error instanceof GatewayFault) return error;
  // Thrown by the library for an error that the gateway answered. It is not an Error.
  if (error instanceof TypedResponseError) {
    const { code, violations, retryAfterMs: wait } = error.errorData ?? {};
    const text = Array.isArray(violations) ? violations.join('; ') : error.errorText;
    const retryAfterMs = isWait(wait) ? wait : null;
    const mayHelpLater = code === 'unavailable' || code === 'overloaded';
    return new GatewayFault(`${method}: ${text} (${code})`, { code, retryAfterMs, mayHelpLater });
  }
  // A connection that failed, or no answer in time.
  const why = error?.cause?.code ?? error?.message ?? String(error);
  if (NOT_TRUSTED.test(why)) {
    const message = `${method}: the gateway's TLS certificate is not trusted: ${why}`;
    return new GatewayFault(message, { code: 'not-trusted' });
  }
  return new GatewayFault(`${method}: no answer from the gateway: ${why}`, { mayHelpLater: true });
}

function callsUrl(text) {
  const url = new URL(text);
  const isLoopback = ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname);
  if (url.protocol !== 'https:' && !isLoopback) {
    throw new Error('it is not https, so the token would be sent in the clear');
  }
  return new URL('/typedrequest', url).href;
}

/** Never sooner than the gateway says, and never in a tight loop. */
function pause(retryAfterMs) {
  return Math.max(retryAfterMs, SHORTEST_PAUSE_MS);
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}
