import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";

const BEGIN = "-----BEGIN CERTIFICATE-----";
/** Shortest RSA key whose signatures are believed, in bits. */
const RSA_BITS = 2048;

/**
 * The certificates of a PEM file, each as PEM. Their dates do not count: an identity provider's certificate carries
 * its key, and is trusted because it stands here.
 * @throws Error when the file cannot be read, has no certificate, or one whose key is too weak
 */
export function readSamlCertificates(file: string): readonly string[] {
  const [, ...texts] = readFileSync(file, "utf8").split(BEGIN);
  if (texts.length === 0) throw new Error(`${file} has no certificate in PEM form`);
  return texts.map((text) => {
    const certificate = new X509Certificate(BEGIN + text);
    const { asymmetricKeyType: type, asymmetricKeyDetails: details } = certificate.publicKey;
    if (type !== "rsa" || (details?.modulusLength ?? 0) < RSA_BITS)
      throw new Error(`${file} has a certificate whose key is no RSA key of ${RSA_BITS} bits or more`);
    return certificate.toString();
  });
}
