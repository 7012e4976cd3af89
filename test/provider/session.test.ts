import { describe, expect, it } from "vitest";
import { settings } from "../../provider/dist/pulumi/session.js";

const configured: Record<string, string> = {
  "gatehouse:url": "http://configured.example",
  "gatehouse:username": "ci",
  "gatehouse:password": "from-configuration",
};
const lookup = (key: string) => configured[key];

describe("settings of the provider", () => {
  it("come from the stack's configuration where the environment says nothing", () => {
    expect(settings(lookup, {})).toEqual({
      GATEHOUSE_URL: "http://configured.example",
      GATEHOUSE_USERNAME: "ci",
      GATEHOUSE_PASSWORD: "from-configuration",
    });
  });

  it("are overridden one by one by the environment, also by a file", () => {
    const env = { GATEHOUSE_URL: "http://environment.example" };
    expect(settings(lookup, env)).toMatchObject({ ...env, GATEHOUSE_USERNAME: "ci" });
    expect(settings(lookup, { GATEHOUSE_URL_FILE: "/run/url" })).not.toHaveProperty("GATEHOUSE_URL");
  });

  it.each([{ GATEHOUSE_TOKEN: "t" }, { GATEHOUSE_API_KEY_FILE: "/run/key" }, { GATEHOUSE_USERNAME: "me" }])(
    "never mix two credentials: %o replaces the configured one",
    (env) => {
      expect(settings(lookup, env)).toEqual({ GATEHOUSE_URL: "http://configured.example", ...env });
    },
  );

  it("leave out what is empty, and what is not ours", () => {
    expect(settings(() => undefined, { GATEHOUSE_URL: "", PATH: "/bin" })).toEqual({});
  });
});
