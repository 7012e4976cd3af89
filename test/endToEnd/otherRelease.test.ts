import { describe, expect, it } from "vitest";
import { engines, gatehouse } from "../support/gatehouse.ts";
import { policyEnv } from "../support/policy.ts";
import { testProgram } from "../support/policyProgram.ts";
import { startRecordedService } from "../support/recordedService.ts";
import { shared } from "../support/shared.ts";

const NOTICE =
  /the server has version 0\.31\.0, and Gatehouse was tested with versions up to 0\.27; it is used like version 0\.27/g;

const service = shared(() =>
  startRecordedService([
    "info of a newer version",
    "login",
    "token of the namespace",
    "get namespace with its members",
    "list devices by an unknown field",
    "firewall rules do not exist",
    "list keys",
    "list API keys",
    "list invitations",
    "legacy user: GET /api/namespaces/install-key",
    "legacy user: GET /api/tags",
    "legacy user: GET /api/sessions",
  ]),
);
const env = () => ({
  GATEHOUSE_URL: service.url,
  GATEHOUSE_USERNAME: "admin",
  GATEHOUSE_PASSWORD: "password123",
  GATEHOUSE_TENANT: "a7d30b2c-5fdf-4149-adc1-afc58e37821b",
});

const times = (text: string) => text.match(NOTICE)?.length ?? 0;

it("gatehouse access reports an error together with the release of the service", async () => {
  const { code, stderr, stdout } = await gatehouse(["access", "--json"], env());
  expect([code, times(stderr), JSON.parse(stdout)]).toMatchObject([
    1,
    1,
    { ok: false, error: { code: "validation", status: 400 } },
  ]);
  expect(stderr).toMatch(/error: .* \[getDevices \(GET \/api\/devices/);
});

describe.each(engines.filter(({ available }) => available))("with the $label", ({ engine }) => {
  const devices = {
    one: { type: "Device", args: { device: "one" } },
    two: { type: "Device", args: { device: "two" } },
  };

  it.each([
    ["a resource", policyEnv(devices)],
    ["a lookup", { LOOKUPS: "yes" }],
  ])("a run reports the release once if %s fails", { timeout: 120_000 }, async (_what, more) => {
    const { code, stdout, stderr } = await testProgram()
      .stack({ engine, env: env() })
      .run(["up", "--yes"], more);
    expect([code, times(stdout + stderr)]).toEqual([1, 1]);
    expect(stdout + stderr).toMatch(/\[getDevices \(GET \/api\/devices/);
  });
});
