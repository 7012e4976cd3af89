import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { fileFailureText } from "@gatehouse-access/sdk/errors";
import { openToOthers, strangersMayDoAnything } from "../files/dataFolder.ts";
import type { TlsIdentity } from "../http/listener/HttpServers.ts";
import { OperatorError } from "../OperatorError.ts";
import type { TlsFiles } from "../settings/readConfig.ts";

/**
 * Reads a certificate and its key. The group of the key file may have read permission, because many systems use a group
 * to give services access to keys.
 * @throws OperatorError a file cannot be read, the key is accessible to all users, or certificate and key do not match
 */
export function readTls({ certFile, keyFile }: TlsFiles): TlsIdentity {
  const cert = readPem("certificate", certFile, "GATEHOUSE_TLS_CERT_FILE");
  const key = readPem("key", keyFile, "GATEHOUSE_TLS_KEY_FILE");
  if (openToOthers(keyFile, strangersMayDoAnything)) {
    throw new OperatorError(
      `All users of this machine can read or write the TLS key ${keyFile}. Run \`chmod o= ${keyFile}\`. If another ` +
        "user may have read the key, replace the key and the certificate.",
    );
  }
  const identity = { cert, key, minVersion: "TLSv1.2" } as const;
  try {
    createSecureContext(identity);
  } catch (error) {
    // Show only the code of the OpenSSL error, because the text of the error may quote the file's content.
    const code = error instanceof Error && "code" in error ? ` (${error.code})` : "";
    throw new OperatorError(
      `Cannot use the TLS certificate ${certFile} and the key ${keyFile}${code}: they must be a certificate ` +
        "with its chain and its private key without a passphrase, both in PEM form",
    );
  }
  return identity;
}

function readPem(what: string, file: string, variable: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const text = fileFailureText("read", `the TLS ${what} ${file} (${variable})`, error);
    throw new OperatorError(text, { cause: error });
  }
}
