import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { InvalidError } from "../../errors.ts";
import { digestOf } from "../../secrets/digest.ts";
import type { Services } from "../../services.ts";

/** What the service shows a container engine, and believes it by; PEM. */
export interface TlsMaterial {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** The columns of a connector that keep it. */
export interface StoredTls {
  readonly sealedTls: string | null;
  readonly tlsDigest: string | null;
}

/** Of a connector that is not secure, which has no use for any: what is not kept cannot be lost. */
export const NO_TLS: StoredTls = { sealedTls: null, tlsDigest: null };

const ALLOWED =
  "tls: must be the certificate of an authority (ca), a certificate (cert) and its private key without a passphrase " +
  "(key), all in PEM form";

/** @throws InvalidError it is no TLS material, or certificate and key do not belong together */
function check({ ca, cert, key }: TlsMaterial): void {
  try {
    new X509Certificate(ca);
    createSecureContext({ ca, cert, key });
  } catch {
    // OpenSSL's own words may quote the key.
    throw new InvalidError(ALLOWED);
  }
}

/**
 * The columns for new TLS material, sealed for its connector alone.
 * @throws InvalidError see {@link check}
 */
export function sealTls(services: Services, uid: string, material: TlsMaterial): StoredTls {
  check(material);
  const { ca, cert, key } = material;
  return {
    sealedTls: services.sealer.seal(JSON.stringify({ ca, cert, key }), `connector ${uid}`),
    tlsDigest: digestOf(JSON.stringify([ca, cert])),
  };
}
