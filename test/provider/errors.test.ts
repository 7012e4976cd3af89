import { globSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { EngineError } from "../../provider/engine/errors.ts";
import { commandErrors, resourceErrors } from "../../provider/errorCodes.ts";
import { check } from "../../provider/lifecycle/checkInputs.ts";
import { Configuration } from "../../provider/providers/terraform/configuration.ts";
import { attributePath, failureDiagnostic } from "../../provider/providers/terraform/diagnostics.ts";
import { engineText, ResourceError, said } from "../../provider/resourceError.ts";
import { firewallRule } from "../../provider/resources/firewallRule.ts";
import { ConfigurationError, NotFoundError, printedError, sdkErrors } from "../../sdk/errors.ts";

const ROOT = new URL("../../", import.meta.url);
const sources = globSync("{sdk,provider}/**/*.ts", {
  cwd: ROOT,
  exclude: (name) => /(^|\/)(dist|node_modules|generated)$/.test(name),
}).filter((file) => !file.endsWith("errorCodes.ts"));

describe("the catalog of error codes", () => {
  const text = sources.map((file) => readFileSync(new URL(file, ROOT), "utf8")).join("\n");
  const codes = [sdkErrors, resourceErrors, commandErrors].flatMap((kinds) => Object.keys(kinds));

  it("contains each code once", () => {
    expect(sources.length).toBeGreaterThan(200);
    expect(new Set(codes).size).toBe(codes.length);
  });

  it.each(codes)("%s occurs in the sources", (code) => {
    expect(text).toContain(`"${code}"`);
  });
});

describe("an error as JSON", () => {
  it("contains the code, the field path, the cause and the remedy of an invalid setting", () => {
    const error = new ConfigurationError("must be a uuid", { field: ["GATEHOUSE_TENANT"], remedy: "set it" });
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      code: "configuration",
      message: "GATEHOUSE_TENANT must be a uuid. Set it.",
      field: ["GATEHOUSE_TENANT"],
      detail: "must be a uuid",
      remedy: "set it",
    });
  });

  it("contains the resource and the path inside a value, and no cause or stack trace", () => {
    const error = new ResourceError(
      "FirewallRule",
      { code: "invalid_input", field: ["filter", "tags", 0], value: "a b", detail: said`must be a tag` },
      { cause: new Error("secret") },
    );
    expect(error.toJSON()).toEqual({
      code: "invalid_input",
      message: "FirewallRule.filter.tags.0 must be a tag.",
      resource: "FirewallRule",
      field: ["filter", "tags", 0],
      value: "a b",
      detail: "must be a tag",
    });
  });

  it("contains the service's request id", () => {
    const details = {
      operation: "getTags",
      method: "GET",
      path: "/api/tags",
      outcome: "none",
      attempts: 1,
    } as const;
    const error = new NotFoundError("not found (404)", { ...details, requestId: "r-1" });
    expect(error.toJSON()).toMatchObject({ code: "not_found", detail: "not found (404)", requestId: "r-1" });
    expect(printedError(error)).toBe(
      "Not found (404). [getTags (GET /api/tags), request id r-1] [not_found]",
    );
  });
});

it("formats the terms in an error of a resource for each front end", () => {
  const error = new ResourceError("Device", {
    code: "already_exists",
    field: ["adopt"],
    detail: said`DeviceTags exists`,
    remedy: said`set ${{ field: "forceDestroy", value: true }}`,
  });
  expect(error.message).toBe("Device.adopt: DeviceTags exists. Set forceDestroy: true.");
  expect(error.textIn(() => "force_destroy = true", ["force_adopt"])).toBe(
    "force_adopt: DeviceTags exists. Set force_destroy = true.",
  );
  expect(engineText(error)).toBe("adopt: DeviceTags exists. Set forceDestroy: true. [already_exists]");
});

it.each([
  ["It is wrong.", "See --help.", "It is wrong. See --help."],
  ["it is wrong", "see --help", "It is wrong. See --help."],
  [
    "https://a.example does not use TLS",
    "validDays: 30 is valid",
    "https://a.example does not use TLS. validDays: 30 is valid.",
  ],
  ["some are missing:\n  a\n  b", undefined, "Some are missing:\n  a\n  b"],
])("writes the cause %j and the remedy %j as sentences", (detail, remedy, text) => {
  expect(new EngineError("usage", detail, { remedy }).message).toBe(text);
});

it.each([
  [["--at"], "must be a time", "--at must be a time."],
  [["tenant"], "The user has no namespace", "tenant: The user has no namespace."],
  [["access.ignore:4"], "must have a reason", "access.ignore:4 must have a reason."],
])("writes the field %j and the cause %j as a sentence", (field, detail, text) => {
  expect(new EngineError("usage", detail, { field }).message).toBe(text);
});

describe("a diagnostic of Terraform", () => {
  it("points to the invalid member of an attribute", () => {
    const rule = {
      action: "deny",
      priority: 1,
      sourceIp: ".*",
      username: ".*",
      filter: { hostname: "^web 1$" },
    };
    const { failures } = check(firewallRule.definition, rule);
    expect(failures.map(({ field }) => field)).toEqual([["filter", "hostname"]]);
    expect(failures.map((failure) => failureDiagnostic(firewallRule.definition, failure))).toMatchObject([
      {
        attribute: attributePath("filter", "hostname"),
        detail: expect.stringMatching(/^filter\.hostname: .* matches no device name/),
      },
    ]);
  });

  it("never points to an attribute with a secret", () => {
    const block = {
      url: "https://one.example",
      tenant: null,
      username: null,
      password: null,
      totp_secret: null,
      api_key: null,
      token: null,
      ca_file: null,
      retry_timeout: null,
    };
    const attributes = (row: object) =>
      new Configuration({}, { ...block, ...row } as never).errors.map(({ attribute }) => attribute);
    const secret = { username: "ana", password: "pw", totp_secret: "not base32!" };
    expect(attributes(secret)).toEqual([undefined]);
    expect(attributes({ url: "ftp://ana:pw@one.example" })).toEqual([undefined]);
  });
});
