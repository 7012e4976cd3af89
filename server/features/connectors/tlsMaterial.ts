import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { InvalidError } from "../../errors.ts";
import { digestOf } from "../../secrets/digest.ts";
import type { SqlServices } from "../../services.ts";

/** The CA certificate, certificate and private key for connections to a container engine, in PEM format. */
export interface TlsMaterial {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** The columns in which a connector stores its TLS material. */
export interface StoredTls {
  readonly sealedTls: string | null;
  readonly tlsDigest: string | null;
}

/** The TLS columns of a connector without TLS. Unused TLS material is not stored, so that it cannot leak. */
export const NO_TLS: StoredTls = { sealedTls: null, tlsDigest: null };

const ALLOWED =
  "tls must be the certificate of an authority (ca), a certificate (cert) and its private key without a passphrase " +
  "(key), all in PEM form";

/**
 * Checks TLS material.
 * @throws InvalidError the TLS material is unreadable, or the certificate does not match the key
 */
function check({ ca, cert, key }: TlsMaterial): void {
  try {
    new X509Certificate(ca);
    createSecureContext({ ca, cert, key });
  } catch {
    // The original error is omitted, because OpenSSL's message may contain the key.
    throw new InvalidError(ALLOWED);
  }
}

/**
 * Returns the columns for new TLS material. The private key is encrypted, and can be decrypted only for this connector.
 * @throws InvalidError see {@link check}
 */
export function sealTls(
  services: Pick<SqlServices, "sealer">,
  uid: string,
  material: TlsMaterial,
): StoredTls {
  check(material);
  const { ca, cert, key } = material;
  return {
    sealedTls: services.sealer.seal(JSON.stringify({ ca, cert, key }), `connector ${uid}`),
    tlsDigest: digestOf(JSON.stringify([ca, cert])),
  };
}
