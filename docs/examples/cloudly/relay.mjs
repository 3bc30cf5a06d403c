// A control plane serves one relay: a client of its own at the gateway, its address record, its
// certificate as files. Run again, it changes nothing; with --withdraw it takes all of it back.
//
// Node.js 18 or 20, in this folder:
//
//   npm install
//   export GATEWAY_URL=https://gateway.example.com OPERATOR_TOKEN_FILE=/etc/cloudly/gateway-token
//   # or the token itself in OPERATOR_TOKEN; for a private CA, its PEM in NODE_EXTRA_CA_CERTS
//   node relay.mjs --relay a1 --hostname relay.cluster-a.example.com --address 198.51.100.85 \
//     --state /var/lib/cloudly
//   node relay.mjs … --withdraw
//
// Exit status: 0 done; 1 refused; 2 called wrongly; 3 not yet, run it again later.

import { rm } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  installCertificate,
  readOptional,
  removeCertificate,
  requirePathPiece,
  writeSecret,
} from './files.mjs';
import { Gateway, GatewayFault, seconds } from './gateway.mjs';

const CERTIFICATE_LIMIT_MS = 120_000;
const EVERY_CAPABILITY = ['syncDnsRecords', 'requestCertificates', 'readCertificates'];

const REMEDIES = {
  unauthorized:
    "The token was replaced or revoked. If it is the relay's, and not on purpose: remove its " +
    'file in <state>/tokens and run this again, which makes another one.',
  'not-trusted':
    'If another authority signed its certificate, name that PEM file in NODE_EXTRA_CA_CERTS.',
  forbidden: "Provisioning needs the operator's token, which begins with gwa_.",
};

class CalledWrongly extends Error {}

async function serve(gateway, relay) {
  const own = gateway.as(await ensureToken(gateway, relay));

  const { status } = await own.publish(relay.ownership, relay.record);
  say('record', `${status}: ${relay.record.type} ${relay.record.value}`);

  const certificate = await own.waitForCertificate(relay.ownership, {
    limitMs: CERTIFICATE_LIMIT_MS,
    onWait: ({ status }, pauseMs) => say('certificate', `${status}, again in ${seconds(pauseMs)}`),
  });
  const { folder, isNew } = await installCertificate(
    relay.certificatesFolder,
    relay.ownership.hostname,
    certificate,
  );
  const until = new Date(certificate.validUntil).toISOString();
  say('certificate', `${isNew ? 'written to' : 'unchanged in'} ${folder}, valid until ${until}`);
  say('next', `ask again at ${new Date(certificate.renewAfter).toISOString()}`);
}

/**
 * The relay's token. The gateway shows a token once, when it makes it, so it is stored before
 * anything else happens. When there is none, the answer that held it was lost, or its file: then
 * another one is made, which ends the lost one.
 */
async function ensureToken(gateway, relay) {
  const { client, apiToken: first } = await gateway.provision('ensure', relay.spec);
  const about = `${client.clientId}, policy ${client.policyGeneration}`;
  const kept = first === null ? await readOptional(relay.tokenFile) : null;
  if (kept !== null) {
    say('client', `${about}, token as before`);
    return kept;
  }
  const token =
    first ?? (await gateway.provision('rotate', { clientId: client.clientId })).apiToken;
  await writeSecret(relay.tokenFile, token);
  say('client', `${about}, new token in ${relay.tokenFile}`);
  return token;
}

/** May be repeated, also after half of it was done. */
async function withdraw(gateway, relay) {
  // A client that is not there cannot be removed; now it is there, and may do nothing any more.
  await gateway.provision('ensure', { ...relay.spec, hostnamePatterns: [], capabilities: [] });
  const { clientId } = relay.spec;
  await gateway.provision('remove', { clientId }, { releaseHoldings: true });
  say('client', `${clientId} removed, with its record and its certificate`);
  await removeCertificate(relay.certificatesFolder, relay.ownership.hostname);
  await rm(relay.tokenFile, { force: true });
  say('files', 'token and certificate removed');
}

/** Everything that follows from the options: one client for each relay, good for one hostname. */
function relayOf({ relay, hostname, address, state }) {
  const isIpv6 = isIP(address) === 6;
  return {
    spec: {
      clientId: `cloudly:${requirePathPiece(relay)}`,
      clientType: 'relay',
      hostnamePatterns: [hostname],
      allowedDnsRecordAddresses: [`${address}/${isIpv6 ? 128 : 32}`],
      capabilities: EVERY_CAPABILITY,
    },
    ownership: { appId: `cluster-relay:${relay}`, hostname: requirePathPiece(hostname) },
    record: { type: isIpv6 ? 'AAAA' : 'A', value: address, ttl: 60 },
    tokenFile: join(state, 'tokens', relay),
    certificatesFolder: join(state, 'certificates'),
  };
}

function readOptions() {
  const text = { type: 'string' };
  try {
    const { values } = parseArgs({
      options: {
        relay: text,
        hostname: text,
        address: text,
        state: text,
        withdraw: { type: 'boolean', default: false },
      },
    });
    for (const name of ['relay', 'hostname', 'address', 'state']) {
      if (!values[name]) throw new Error(`--${name} is missing`);
    }
    return { withdraw: values.withdraw, relay: relayOf(values) };
  } catch (error) {
    throw new CalledWrongly(error.message);
  }
}

/** From the environment: everybody on the machine can read an argument list. */
async function openGateway({ GATEWAY_URL, OPERATOR_TOKEN, OPERATOR_TOKEN_FILE }) {
  if (!GATEWAY_URL) throw new CalledWrongly('GATEWAY_URL is not set');
  const token = OPERATOR_TOKEN_FILE
    ? await readOptional(OPERATOR_TOKEN_FILE)
    : OPERATOR_TOKEN;
  if (!token?.trim()) {
    throw new CalledWrongly(
      OPERATOR_TOKEN_FILE
        ? `OPERATOR_TOKEN_FILE: ${OPERATOR_TOKEN_FILE} holds no token`
        : 'neither OPERATOR_TOKEN_FILE nor OPERATOR_TOKEN is set',
    );
  }
  try {
    return new Gateway(GATEWAY_URL, token.trim());
  } catch (error) {
    throw new CalledWrongly(`GATEWAY_URL ${GATEWAY_URL}: ${error.message}`);
  }
}

function say(what, text) {
  process.stdout.write(`${what.padEnd(12)}${text}\n`);
}

function statusOf(error) {
  if (error instanceof CalledWrongly) return 2;
  return error instanceof GatewayFault && error.mayHelpLater ? 3 : 1;
}

try {
  const { relay, withdraw: isWithdrawn } = readOptions();
  const gateway = await openGateway(process.env);
  await (isWithdrawn ? withdraw(gateway, relay) : serve(gateway, relay));
} catch (error) {
  process.stderr.write(`relay.mjs: ${error.message}\n`);
  if (REMEDIES[error.code]) process.stderr.write(`  ${REMEDIES[error.code]}\n`);
  process.exitCode = statusOf(error);
}
// Connections that are kept for the next call would hold the process for seconds.
process.exit();
