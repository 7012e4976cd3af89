import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { openToOthers, othersMayDoAnything } from "./dataFolder.ts";
import { OperatorError } from "./OperatorError.ts";
import type { SigningKeys } from "./services.ts";

const fileName = "signing-key.pem";
const modulusLength = 2048;

/**
 * The service's signing key, from the data folder; made at the first start. Only the process that owns the
 * database may call this, so that no two make one at a time.
 * @throws OperatorError when the file is readable by others than its user, or is no RSA key of at least 2048
 * bits: a key that others could have read must be replaced, not used on
 */
export async function loadSigningKeys(folder: string): Promise<SigningKeys & { readonly made: boolean }> {
  const file = join(folder, fileName);
  const made = !existsSync(file);
  if (made) await make(file, folder);
  if (openToOthers(file, othersMayDoAnything)) {
    throw new OperatorError(
      `Others than its user may read or write the signing key ${file}: run \`chmod 600 ${file}\` if nobody else ` +
        "can have read it. Else delete it: a new one is made, and every login ends.",
    );
  }
  const privateKey = parse(file);
  return { privateKey, publicKey: createPublicKey(privateKey), made };
}

/** The file appears under its name when it is whole and on the disk, or not at all. */
async function make(file: string, folder: string): Promise<void> {
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength });
  const temporary = `${file}.new`;
  rmSync(temporary, { force: true });
  writeDurably(temporary, privateKey.export({ type: "pkcs8", format: "pem" }).toString());
  renameSync(temporary, file);
  if (process.platform !== "win32") syncFolder(folder);
}

function writeDurably(file: string, text: string): void {
  const descriptor = openSync(file, "wx", 0o600);
  try {
    writeSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function parse(file: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey(readFileSync(file));
  } catch {
    // The error of the parser is left out: it may quote the key.
    throw new OperatorError(
      `The signing key ${file} cannot be read: it must be an RSA private key in PEM form`,
    );
  }
  if (key.asymmetricKeyType !== "rsa" || (key.asymmetricKeyDetails?.modulusLength ?? 0) < modulusLength) {
    throw new OperatorError(`The signing key ${file} must be an RSA key of ${modulusLength} bits or more`);
  }
  return key;
}
