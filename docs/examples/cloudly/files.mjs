// What the control plane keeps on disk: each relay's token, and its certificate with the key.
//
//   <state>/tokens/<relay>                         0600
//   <state>/certificates/<hostname>/current        a link to the version that is served:
//   <state>/certificates/<hostname>/000001/        chain.pem, privkey.pem (0600)
//
// A version is written whole before the link leads to it, and the one before it stays: a reader that
// opens the folder once never sees a new chain with an old key. Nothing is written that is not a
// valid pair. One run at a time for each hostname.

import { createPrivateKey, randomUUID, X509Certificate } from 'node:crypto';
import { mkdir, open, readFile, readlink, readdir, rename, rm, symlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const PKCS8 = /^-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\s*$/;
const LONGEST_CHAIN = 10;
const VERSION = /^[0-9]{6}$/;
const UNFINISHED = /^new[.]/;

/** The text of a file, null when there is none. */
export async function readOptional(path) {
  return unlessMissing(readFile(path, 'utf8'));
}

/** Write a file that only its owner may read, and that is there whole or not at all. */
export async function writeSecret(path, text) {
  await makeFolder(dirname(path));
  // The same name each time, so that a killed run leaves no secret behind that nobody finds.
  const temporary = join(dirname(path), `.${basename(path)}.new`);
  await writeSynced(temporary, text);
  await rename(temporary, path);
  await sync(dirname(path));
}

/**
 * Make `certificate` (of the contract) the current version of its hostname.
 *
 * Answers { folder, isNew }; a certificate that is there already is left alone, also its times.
 * What an earlier run left half-made is removed. Throws an Error that says what is wrong when the
 * certificate is not to be served; then nothing is touched.
 */
export async function installCertificate(folder, hostname, certificate) {
  judge(hostname, certificate);
  const home = join(folder, hostname);
  const current = join(home, 'current');
  await makeFolder(home);
  const live = await unlessMissing(readlink(current));
  await sweep(home, live);
  if (await isThere(current, certificate)) return { folder: current, isNew: false };
  const version = await writeVersion(home, certificate);
  const link = join(home, `new.${randomUUID()}`);
  await symlink(version, link);
  await rename(link, current);
  await sync(home);
  await sweep(home, version);
  return { folder: current, isNew: true };
}

/** Remove the certificate of a hostname, with all its versions. */
export async function removeCertificate(folder, hostname) {
  await rm(join(folder, hostname), { recursive: true, force: true });
}

/** The text, if a path may be built with it. Throws an Error otherwise. */
export function requirePathPiece(text) {
  if (!/^[A-Za-z0-9][A-Za-z0-9.-]*$/.test(text)) throw new Error(`${text} is no part of a path`);
  return text;
}

/** Throws unless all holds that docs/clients.md lists under "Before a certificate is used". */
function judge(hostname, certificate) {
  const refuse = (what) => {
    throw new Error(`the certificate for ${hostname} is not written: ${what}`);
  };
  const { chain, key } = read(certificate) ?? refuse('it is no PEM of a chain and a PKCS#8 key');
  if (chain.length > LONGEST_CHAIN) refuse(`its chain has ${chain.length} certificates`);
  const [leaf] = chain;
  if (certificate.hostname !== hostname) refuse(`it is told to be for ${certificate.hostname}`);
  if (leaf.subjectAltName !== `DNS:${hostname}`) refuse(`it is for ${leaf.subjectAltName}`);
  if (!leaf.checkPrivateKey(key)) refuse('the key does not fit');
  for (const [index, issued] of chain.slice(0, -1).entries()) {
    const issuer = chain[index + 1];
    const isIssuer = issued.checkIssued(issuer) && issued.verify(issuer.publicKey);
    if (!isIssuer) refuse('a certificate of its chain is not by the next one');
  }
  const { validFrom, validUntil, renewAfter } = certificate;
  if (!isSameSecond(validFrom, leaf.validFrom) || !isSameSecond(validUntil, leaf.validTo)) {
    refuse(`it is valid from ${leaf.validFrom} to ${leaf.validTo}, and told otherwise`);
  }
  if (!Number.isSafeInteger(renewAfter)) refuse('nobody told when to renew it');
  const now = new Date();
  const clock = `; the clock says ${now.toISOString()}`;
  if (now > new Date(leaf.validTo)) refuse(`it ended ${leaf.validTo}${clock}`);
  if (now < new Date(leaf.validFrom)) refuse(`it begins ${leaf.validFrom}${clock}`);
}

/** { chain, key }, or null where there is more or less in the texts. OpenSSL's errors help nobody. */
function read(certificate) {
  try {
    const { chainPem, privateKeyPem } = certificate;
    if (chainPem.replace(CERTIFICATE, '').trim() !== '' || !PKCS8.test(privateKeyPem)) return null;
    const chain = chainPem.match(CERTIFICATE).map((pem) => new X509Certificate(pem));
    return { chain, key: createPrivateKey(privateKeyPem) };
  } catch {
    return null;
  }
}

function isSameSecond(toldMs, text) {
  return Math.floor(toldMs / 1000) * 1000 === Date.parse(text);
}

async function isThere(current, { chainPem, privateKeyPem }) {
  return (
    (await readOptional(join(current, 'chain.pem'))) === chainPem &&
    (await readOptional(join(current, 'privkey.pem'))) === privateKeyPem
  );
}

/** Put a version on the disk, under the next number. Nothing leads to it yet. */
async function writeVersion(home, { chainPem, privateKeyPem }) {
  const last = (await versionsIn(home)).at(-1) ?? '0';
  const version = String(Number(last) + 1).padStart(6, '0');
  const made = join(home, `new.${randomUUID()}`);
  await mkdir(made, { mode: 0o700 });
  await writeSynced(join(made, 'chain.pem'), chainPem);
  await writeSynced(join(made, 'privkey.pem'), privateKeyPem);
  await sync(made);
  await rename(made, join(home, version));
  await sync(home);
  return version;
}

/**
 * Remove what killed runs left, and versions but the live one and the one before it: a reader may be
 * between the link and the files. What has another name than this program gives is not touched.
 */
async function sweep(home, live) {
  const versions = await versionsIn(home);
  const before = versions.filter((version) => live === null || version < live).at(-1);
  const unfinished = (await readdir(home)).filter((name) => UNFINISHED.test(name));
  const outlived = versions.filter((version) => version !== live && version !== before);
  for (const name of [...unfinished, ...outlived]) await rm(join(home, name), { recursive: true });
}

/** From the oldest to the newest. */
async function versionsIn(home) {
  return (await readdir(home)).filter((name) => VERSION.test(name)).sort();
}

async function unlessMissing(reading) {
  try {
    return await reading;
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    throw error;
  }
}

/** The folder with those above it, each of them on the disk in the one that holds it. */
async function makeFolder(path) {
  const wanted = resolve(path);
  const first = await mkdir(wanted, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let made = wanted; made.length >= first.length; made = dirname(made)) {
    await sync(dirname(made));
  }
}

async function writeSynced(path, text) {
  const file = await open(path, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function sync(folder) {
  const handle = await open(folder);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
