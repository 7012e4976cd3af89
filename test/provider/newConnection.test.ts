import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { describe, expect, it, onTestFinished } from "vitest";
import { settingsOf } from "../../provider/providers/instanceSettings.ts";
import { newConnection, settings } from "../../provider/service/newConnection.ts";
import { makeCertificate, openssl } from "../support/certificate.ts";
import { testFolder } from "../support/folder.ts";
import { listenOnNewPort } from "../support/listening.ts";

const configured: Record<string, string> = {
  "gatehouse:url": "http://configured.example",
  "gatehouse:username": "ci",
  "gatehouse:password": "from-configuration",
};
const lookup = (key: string) => configured[key];

describe("settings of the provider", () => {
  it("come from the stack's configuration if the environment does not set them", () => {
    expect(settings(lookup, {})).toEqual({
      GATEHOUSE_URL: "http://configured.example",
      GATEHOUSE_USERNAME: "ci",
      GATEHOUSE_PASSWORD: "from-configuration",
    });
  });

  it("are overridden individually by environment variables and their files", () => {
    const env = { GATEHOUSE_URL: "http://environment.example" };
    expect(settings(lookup, env)).toMatchObject({ ...env, GATEHOUSE_USERNAME: "ci" });
    expect(settings(lookup, { GATEHOUSE_URL_FILE: "/run/url" })).not.toHaveProperty("GATEHOUSE_URL");
  });

  it.each([{ GATEHOUSE_TOKEN: "t" }, { GATEHOUSE_API_KEY_FILE: "/run/key" }, { GATEHOUSE_USERNAME: "me" }])(
    "never combine two credentials: %o replaces the configured credential",
    (env) => {
      expect(settings(lookup, env)).toEqual({ GATEHOUSE_URL: "http://configured.example", ...env });
    },
  );

  it("of a workload include the variables of GitHub, and replace the configured credential", () => {
    const job = {
      ACTIONS_ID_TOKEN_REQUEST_URL: "https://github.example",
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: "t",
    };
    const env = { GATEHOUSE_OIDC: "github", ...job };
    expect(settings(lookup, env)).toEqual({ GATEHOUSE_URL: "http://configured.example", ...env });
    const ofStack = (key: string) => ({ "gatehouse:oidc": "github", "gatehouse:oidcAudience": "a" })[key];
    expect(settings(ofStack, job)).toEqual({
      GATEHOUSE_OIDC: "github",
      GATEHOUSE_OIDC_AUDIENCE: "a",
      ...job,
    });
  });

  it("of an explicit instance with only oidc include the token of the job, on the same service", () => {
    const url = "http://service.example";
    const job = { GATEHOUSE_URL: url, GATEHOUSE_OIDC_TOKEN: "t", GATEHOUSE_API_KEY: "k" };
    const ofInstance = (inputs: object) => settingsOf({ isDefault: false, inputs: { url, ...inputs } }, job);
    const own = { GATEHOUSE_URL: url, GATEHOUSE_OIDC: "gitlab" };
    expect(ofInstance({ oidc: "gitlab" })).toEqual({ ...own, GATEHOUSE_OIDC_TOKEN: "t" });
    const other = "http://other.example";
    expect(ofInstance({ oidc: "gitlab", url: other })).toEqual({ ...own, GATEHOUSE_URL: other });
    expect(ofInstance({ token: "own" })).toEqual({ GATEHOUSE_URL: url, GATEHOUSE_TOKEN: "own" });
  });

  it("omit empty and unrelated variables", () => {
    expect(settings(() => undefined, { GATEHOUSE_URL: "", PATH: "/bin" })).toEqual({});
  });
});

it.skipIf(!openssl)(
  "the authority of gatehouse:caFile is trusted, including for checks of an API key's secret",
  async () => {
    const { cert, key } = makeCertificate(testFolder(), "service");
    const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, ({ url }, response) =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(url === "/info" ? '{"version":"v0.19.0"}' : "[]"),
    );
    const configuration: Record<string, string> = {
      "gatehouse:url": `https://127.0.0.1:${await listenOnNewPort(server)}`,
      "gatehouse:caFile": cert,
      "gatehouse:apiKey": "11111111-2222-4333-8444-555555555555",
    };
    const connection = newConnection((name) => configuration[name], { tell: () => {} });
    onTestFinished(async () => {
      await connection.client.close();
      server.closeAllConnections();
      server.close();
    });
    expect(await connection.client.getTags()).toEqual([]);
    expect(await connection.opens("11111111-2222-4333-8444-666666666666")).toBe(true);
  },
);
