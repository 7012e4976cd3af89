import { X509Certificate } from "node:crypto";
import { getCACertificates } from "node:tls";
import { ConfigurationError } from "./errors.ts";

/**
 * What TLS trusts: the authorities of this process (Node's own, the system's with `--use-system-ca`, those of
 * NODE_EXTRA_CA_CERTS), and beside them `ca`, certificates as PEM.
 * @throws ConfigurationError when `ca` holds no certificate
 */
export function trusted(ca: string): string[] {
  try {
    new X509Certificate(ca);
  } catch (cause) {
    throw new ConfigurationError(
      "the certificates of authorities (ca, GATEHOUSE_CA_FILE) are no PEM: a file of them has lines -----BEGIN CERTIFICATE-----",
      { cause },
    );
  }
  return [...getCACertificates("default"), ca];
}
