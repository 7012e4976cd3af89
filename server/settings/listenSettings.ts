import { z } from "zod";
import { setting } from "./setting.ts";
import { address, listeningPort, origin } from "./values.ts";

/** Settings of the service's listeners and its public address. */
export const listenSettings = {
  host: setting({
    variable: "GATEHOUSE_HOST",
    flag: "--host",
    value: "address",
    about: "Address to listen on",
    allowed: "a host name or an IP address, without a port",
    fallback: "127.0.0.1",
    schema: address,
  }),
  port: setting({
    variable: "GATEHOUSE_PORT",
    flag: "--port",
    value: "number",
    about: "Port to listen on; 0: any free one, which the log line `listening` names",
    allowed: "a whole number from 0 to 65535",
    fallback: "8080",
    schema: listeningPort,
  }),
  internalHost: setting({
    variable: "GATEHOUSE_INTERNAL_HOST",
    flag: "--internal-host",
    value: "address",
    about: "Address to listen on for internal operations, of a network that only trusted services reach",
    allowed: "a host name or an IP address, without a port",
    fallback: "127.0.0.1",
    schema: address,
  }),
  internalPort: setting({
    variable: "GATEHOUSE_INTERNAL_PORT",
    flag: "--internal-port",
    value: "number",
    about:
      "Port to listen on for internal operations; left out: they are not served; 0: any free one, which the log " +
      "line `listening for internal operations` names",
    allowed: "a whole number from 0 to 65535",
    schema: listeningPort.optional(),
  }),
  internalToken: setting({
    variable: "GATEHOUSE_INTERNAL_TOKEN",
    value: "text",
    about: "What each request for an internal operation must carry in the header X-Internal-Token",
    allowed: "a text of 32 to 1024 visible ASCII characters, as `openssl rand -base64 32` makes one",
    secret: true,
    schema: z
      .string()
      .regex(/^[\x21-\x7e]{32,1024}$/)
      .optional(),
  }),
  peerUrl: setting({
    variable: "GATEHOUSE_PEER_URL",
    flag: "--peer-url",
    value: "url",
    about:
      "Address at which other instances reach this one's internal operations, so that a login finds a device whose " +
      "tunnel another instance holds; left out: it finds those of its own instance alone",
    allowed: "http:// or https:// with a host and, if it is another one, a port; needs --internal-port",
    schema: origin.optional(),
  }),
  tlsCertFile: setting({
    variable: "GATEHOUSE_TLS_CERT_FILE",
    flag: "--tls-cert-file",
    value: "file",
    about: "Certificate with its chain, to serve HTTPS; SIGHUP reads it and the key again",
    allowed: "the path of a PEM file, given together with the key",
    schema: z.string().min(1).optional(),
  }),
  tlsKeyFile: setting({
    variable: "GATEHOUSE_TLS_KEY_FILE",
    flag: "--tls-key-file",
    value: "file",
    about: "Private key of the certificate",
    allowed: "the path of a PEM file that not everybody may read, given together with the certificate",
    schema: z.string().min(1).optional(),
  }),
  publicUrl: setting({
    variable: "GATEHOUSE_PUBLIC_URL",
    flag: "--public-url",
    value: "url",
    about: "Address at which clients reach the service, for links; left out: the address that they called",
    allowed: "http:// or https:// with a host and, if it is another one, a port",
    schema: origin.optional(),
  }),
};
