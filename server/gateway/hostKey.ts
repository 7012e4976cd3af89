import { hash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openToOthers, othersMayDoAnything, strangersMayDoAnything } from "../files/dataFolder.ts";
import { createDurably } from "../files/durableFile.ts";
import { OperatorError, reasonOf } from "../OperatorError.ts";
import { ssh2 } from "./ssh/ssh2.ts";

const FILE = "ssh_host_ed25519_key";

/** The key by which clients recognize the SSH entry. */
export interface HostKey {
  /** The private key, in its file's form. */
  readonly pem: string;
  /** The public half as clients show it: `SHA256:` and base64. */
  readonly fingerprint: string;
}

/**
 * The configured host key, else that of the data folder, which the first start creates.
 * @param configured path of the configured one
 * @throws OperatorError it cannot be read or used, or others may read it
 */
export function readHostKey(folder: string, configured: string | undefined): HostKey {
  if (configured !== undefined) return readKey(configured, strangersMayDoAnything);
  const file = join(folder, FILE);
  if (!existsSync(file)) createDurably(file, newEd25519Pair().private);
  return readKey(file, othersMayDoAnything);
}

/** Tries to create a readable key pair. One in 256 fails. */
const TRIES = 20;

/**
 * Creates an Ed25519 key pair in OpenSSH's formats. The library drops the first byte of a public key if it is zero, and
 * then cannot read the pair; such a pair is discarded.
 * @throws Error every try has failed
 */
export function newEd25519Pair(): ReturnType<typeof ssh2.utils.generateKeyPairSync> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const pair = ssh2.utils.generateKeyPairSync("ed25519");
    if (!(ssh2.utils.parseKey(pair.private) instanceof Error)) return pair;
  }
  throw new Error("the SSH library created no Ed25519 key that it can read");
}

function readKey(file: string, forbidden: number): HostKey {
  let pem: string;
  try {
    pem = readFileSync(file, "utf8");
  } catch (error) {
    throw new OperatorError(
      `Cannot read the SSH host key ${file} (GATEHOUSE_SSH_HOST_KEY_FILE): ${reasonOf(error)}`,
    );
  }
  if (openToOthers(file, forbidden)) {
    throw new OperatorError(`Others may read or write the SSH host key ${file}: run \`chmod 600 ${file}\``);
  }
  const key = ssh2.utils.parseKey(pem);
  // The library's errors may quote the file.
  if (key instanceof Error || !key.isPrivateKey()) {
    throw new OperatorError(
      `The SSH host key ${file} cannot be used: it must be a private key without a passphrase, Ed25519, ECDSA or RSA`,
    );
  }
  const digest = hash("sha256", key.getPublicSSH(), "base64").replace(/=+$/, "");
  return { pem, fingerprint: `SHA256:${digest}` };
}
