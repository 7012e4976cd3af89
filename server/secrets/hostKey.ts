import { hash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileFailureText } from "@gatehouse-access/sdk/errors";
import { loadSsh2 } from "@gatehouse-access/sdk/ssh2";
import { openToOthers, othersMayDoAnything, strangersMayDoAnything } from "../files/dataFolder.ts";
import { createDurably } from "../files/durableFile.ts";
import { OperatorError } from "../OperatorError.ts";

const ssh2 = loadSsh2(import.meta.url) as typeof import("ssh2");

/** The purpose with which a backup encrypts the host key. See the parameter `purpose` of the sealer. */
export const HOST_KEY_PURPOSE = "SSH host key of a backup";

/** The host key of the SSH listener. Clients recognize the service by this key. */
export interface HostKey {
  /** The private key, in the format of the key file. */
  readonly pem: string;
  /** The public key's fingerprint in the format that SSH clients show: `SHA256:` and base64. */
  readonly fingerprint: string;
}

/** Returns the path of the host key. If no path is configured, returns the path of a file in the data folder. */
export const hostKeyFile = (folder: string, configured?: string): string =>
  configured ?? join(folder, "ssh_host_ed25519_key");

/**
 * Reads the configured host key. If no path is configured, reads the host key in the data folder. The first start
 * creates this key.
 * @param configured path of the configured key
 * @throws OperatorError the file cannot be read or used, or other users may read it
 */
export function readHostKey(folder: string, configured: string | undefined): HostKey {
  const file = hostKeyFile(folder, configured);
  if (configured === undefined && !existsSync(file)) createDurably(file, newEd25519Pair().private);
  return readKey(file, configured === undefined ? othersMayDoAnything : strangersMayDoAnything);
}

/**
 * Reads the host key like {@link readHostKey}, but never creates it. Returns undefined if the file does not exist.
 * @throws OperatorError the file cannot be read or used, or other users may read it
 */
export function knownHostKey(folder: string, configured: string | undefined): HostKey | undefined {
  return existsSync(hostKeyFile(folder, configured)) ? readHostKey(folder, configured) : undefined;
}

/** Maximum number of attempts to create a readable key pair. About one attempt in 256 fails. */
const TRIES = 20;

/**
 * Creates an Ed25519 key pair in OpenSSH's formats. Discards a pair whose public key begins with a zero byte, because
 * the library drops this byte and cannot read the pair.
 * @throws Error all attempts have failed
 */
export function newEd25519Pair(): ReturnType<typeof ssh2.utils.generateKeyPairSync> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const pair = ssh2.utils.generateKeyPairSync("ed25519");
    if (!(ssh2.utils.parseKey(pair.private) instanceof Error)) return pair;
  }
  throw new Error("the SSH library did not create a readable Ed25519 key");
}

function readKey(file: string, forbidden: number): HostKey {
  let pem: string;
  try {
    pem = readFileSync(file, "utf8");
  } catch (error) {
    const what = `the SSH host key ${file} (GATEHOUSE_SSH_HOST_KEY_FILE)`;
    throw new OperatorError(fileFailureText("read", what, error));
  }
  if (openToOthers(file, forbidden)) {
    throw new OperatorError(
      `Other users can read or write the SSH host key ${file}. Run \`chmod 600 ${file}\``,
    );
  }
  return parseHostKey(pem, `the SSH host key ${file}`);
}

/**
 * Parses the host key in a string.
 * @param name name of the key in messages
 * @throws OperatorError the string is not a private key without a passphrase
 */
export function parseHostKey(pem: string, name: string): HostKey {
  const key = ssh2.utils.parseKey(pem);
  // Do not show the library's error, because it may quote the file's content.
  if (key instanceof Error || !key.isPrivateKey()) {
    throw new OperatorError(
      `Cannot use ${name}: it must be an Ed25519, ECDSA or RSA private key without a passphrase`,
    );
  }
  const digest = hash("sha256", key.getPublicSSH(), "base64").replace(/=+$/, "");
  return { pem, fingerprint: `SHA256:${digest}` };
}
