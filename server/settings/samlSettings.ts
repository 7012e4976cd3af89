import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { z } from "zod";
import { setting } from "./setting.ts";

/** Settings of the identity provider whose users log in by SAML. */
export const samlSettings = {
  samlIdpEntityId: setting({
    variable: "GATEHOUSE_SAML_IDP_ENTITY_ID",
    flag: "--saml-idp-entity-id",
    value: "id",
    about:
      "Entity id of the identity provider whose users log in by SAML, given together with its address, its " +
      "certificate and the public URL; left out: SAML is off",
    allowed: "a text of at most 1024 characters, on the edition enterprise or cloud",
    schema: z.string().min(1).max(1024).optional(),
  }),
  samlSsoUrl: setting({
    variable: "GATEHOUSE_SAML_SSO_URL",
    flag: "--saml-sso-url",
    value: "url",
    about: "Address of the identity provider to which browsers bring requests (binding HTTP-Redirect)",
    allowed: "a URL that begins with https:// or http://",
    schema: z.url({ protocol: /^https?$/ }).optional(),
  }),
  samlCertificateFile: setting({
    variable: "GATEHOUSE_SAML_CERTIFICATE_FILE",
    flag: "--saml-certificate-file",
    value: "file",
    about:
      "Certificates with which the identity provider signs: several while it changes them. Only their keys count, not " +
      "their dates",
    allowed: "the path of a PEM file of certificates with RSA keys of 2048 bits or more",
    schema: z.string().min(1).optional(),
  }),
  samlEmailAttribute: setting({
    variable: "GATEHOUSE_SAML_EMAIL_ATTRIBUTE",
    flag: "--saml-email-attribute",
    value: "name",
    about: "Attribute with a user's e-mail address; without it in a response, the NameID must be one",
    allowed: "the name of an attribute, at most 1024 characters",
    fallback: "email",
    schema: z.string().min(1).max(1024),
  }),
  samlNameAttribute: setting({
    variable: "GATEHOUSE_SAML_NAME_ATTRIBUTE",
    flag: "--saml-name-attribute",
    value: "name",
    about: "Attribute with a user's name; without it in a response, the e-mail address is the name",
    allowed: "the name of an attribute, at most 1024 characters",
    fallback: "name",
    schema: z.string().min(1).max(1024),
  }),
  samlLinkUsers: setting({
    variable: "GATEHOUSE_SAML_LINK_USERS",
    flag: "--saml-link-users",
    value: "true|false",
    about:
      "Whether the identity provider may log in as a user of this service who has the same e-mail address; only for " +
      "one in which nobody can choose his address",
    allowed: "true or false",
    fallback: "false",
    schema: z.enum(["true", "false"]).transform((text) => text === "true"),
  }),
};

const BEGIN = "-----BEGIN CERTIFICATE-----";
/** Minimum length of a trusted RSA key, in bits. */
const RSA_BITS = 2048;

/**
 * The certificates of a PEM file, each as PEM. Their dates do not count: a certificate carries the identity provider's
 * key, which is trusted because it is in this file.
 * @throws Error when the file cannot be read, has no certificate, or one with a weak key
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
