import { z } from "zod";
import { setting } from "./setting.ts";
import { addressRanges, hostAndPort, origins } from "./values.ts";

/** Settings of addresses, proxies, browsers and pages, by which clients reach the service. */
export const clientSettings = {
  sshEndpoint: setting({
    variable: "GATEHOUSE_SSH_ENDPOINT",
    flag: "--ssh-endpoint",
    value: "host:port",
    about:
      "Where clients reach the SSH side; left out: the host that they called, and the port of --ssh-port",
    allowed: "host:port, the port from 1 to 65535",
    schema: hostAndPort.optional(),
  }),
  apiEndpoint: setting({
    variable: "GATEHOUSE_API_ENDPOINT",
    flag: "--api-endpoint",
    value: "host:port",
    about: "Where clients reach the API; left out: the host that they called",
    allowed: "host:port, the port from 1 to 65535",
    schema: hostAndPort.optional(),
  }),
  trustedProxies: setting({
    variable: "GATEHOUSE_TRUSTED_PROXIES",
    flag: "--trusted-proxies",
    value: "addresses",
    about:
      "Proxies whose X-Real-IP, else X-Forwarded-For, and X-Forwarded-Host, -Port and -Proto are believed; they " +
      "must set or remove these headers of their clients. On the SSH port they may send the PROXY protocol",
    allowed: "IP addresses and ranges like 10.0.0.0/8, separated by commas",
    schema: addressRanges.optional(),
  }),
  corsOrigins: setting({
    variable: "GATEHOUSE_CORS_ORIGINS",
    flag: "--cors-origins",
    value: "origins",
    about: "Origins whose pages may call the service from a browser, separated by commas; left out: none",
    allowed: "origins like https://console.example.org, separated by commas",
    schema: origins.optional(),
  }),
  pages: setting({
    variable: "GATEHOUSE_PAGES",
    flag: "--pages",
    value: "on|off",
    about:
      "Whether the pages are served that the service's own links lead to: / and /setup, and those in its mails; off " +
      "where a console serves these paths",
    allowed: "on or off",
    fallback: "on",
    schema: z.enum(["on", "off"]).transform((text) => text === "on"),
  }),
};
