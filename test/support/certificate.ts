import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";

/** True if this machine can create certificates. */
export const openssl = spawnSync("openssl", ["version"]).status === 0;

/**
 * Creates the files of a self-signed certificate for localhost, gatehouse.test and 127.0.0.1.
 * @param algorithm the value of the flag `-newkey` of openssl
 */
export function makeCertificate(
  folder: string,
  name: string,
  algorithm = "ec -pkeyopt ec_paramgen_curve:P-256",
): { cert: string; key: string } {
  const cert = join(folder, `${name}.cert.pem`);
  const key = join(folder, `${name}.key.pem`);
  execFileSync(
    "openssl",
    `req -x509 -newkey ${algorithm} -nodes -days 2 -subj /CN=${name} -addext subjectAltName=DNS:localhost,DNS:gatehouse.test,IP:127.0.0.1 -keyout ${key} -out ${cert}`.split(
      " ",
    ),
    { stdio: "pipe" },
  );
  return { cert, key };
}
