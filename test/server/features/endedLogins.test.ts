import { TOTP } from "otpauth";
import { beforeEach, describe, expect, test } from "vitest";
import { resetPassword, signOut } from "../../../server/admin/changeUser.ts";
import type { DatabaseLocation } from "../../../server/db/Database.ts";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import type { Services } from "../../../server/services.ts";
import { enableMfa, withAppAndUser } from "../http/appOfTest.ts";
import { holdRequest } from "../http/heldRequest.ts";
import { PASSWORD } from "../http/testApp.ts";

type Work = () => Promise<unknown>;
/** Callbacks that run once, before and after the service's next database read of a user. */
let whenUserIsRead: { readonly before?: Work; readonly after?: Work } = {};

async function openWatched(location: DatabaseLocation) {
  const { client, close } = await openDatabase(location);
  const around = async <T>(read: () => Promise<T>): Promise<T> => {
    const { before, after } = whenUserIsRead;
    whenUserIsRead = {};
    await before?.();
    const user = await read();
    await after?.();
    return user;
  };
  const watched = client.$extends({
    query: {
      user: { findUnique: ({ args, query }) => around(() => query(args)) },
      $queryRaw: ({ args, query }) =>
        args.sql.startsWith('SELECT * FROM "User"') ? around(() => query(args)) : query(args),
    },
  });
  return { client: watched as unknown as Services["db"], close };
}

const { app, ana } = withAppAndUser({}, openWatched);

const command = { request: { id: "test" }, user: "ana" };
const stored = () => app.services.db.user.findUniqueOrThrow({ where: { id: ana.id } });

describe("when logins end before a request's body has arrived", () => {
  const endDuring = async (method: string, path: string, body: object) => {
    const finish = await holdRequest(app, ana, method, path, body);
    await signOut(app.services, command);
    return finish();
  };

  test("rejects a change of the account", async () => {
    expect(await endDuring("PATCH", "/api/users", { email: "eve@example.org" })).toBe(401);
    expect((await stored()).email).toBe(ana.email);
  });

  test("sets no second factor", async () => {
    await ana.call("updateUser", { body: { recovery_email: "ana@recovery.org" } });
    const { secret, recovery_codes } = (await ana.call("generateMfa")).body;
    const code = new TOTP({ secret }).generate({ timestamp: app.services.now().getTime() });
    const mfa = { code, secret, recovery_codes };
    expect(await endDuring("PUT", "/api/user/mfa/enable", mfa)).toBe(401);
    expect((await stored()).mfaSecret).toBeNull();
  });
});

describe("when logins end during a request", () => {
  const end = () => signOut(app.services, command);

  test.each(["getUserInfo", "getNamespaceToken"] as const)("%s issues no valid token", async (id) => {
    for (const when of [{ before: end }, { after: end }]) {
      whenUserIsRead = when;
      const { body } = await app.call(id, { token: await app.tokenOf(ana), params: { tenant: ana.tenant } });
      expect((await app.call("getDevices", { token: body.token })).status).toBe(401);
      await app.services.db.user.update({ where: { id: ana.id }, data: { tokenVersion: 0 } });
    }
  });

  test("rejects a change of the account", async () => {
    whenUserIsRead = { after: end };
    const { status } = await ana.call("updateUser", { body: { email: "eve@example.org" } });
    expect(status).toBe(401);
    expect((await stored()).email).toBe(ana.email);
  });
});

describe("a new password", () => {
  const login = (password: string) => app.call("login", { body: { username: "ana", password } });
  let code: () => string;
  beforeEach(async () => {
    ({ code } = await enableMfa(app, ana));
  });
  const finish = (token: string | null) =>
    app.call("authMfa", { body: { token: token ?? "", code: code() } });

  test.each([
    ["of the operator", () => resetPassword(app.services, command, "another-horse")],
    [
      "of the user",
      () => ana.call("updateUser", { body: { password: "another-horse", current_password: PASSWORD } }),
    ],
  ])("%s ends logins that wait for a code", async (_, change) => {
    const waiting = (await login(PASSWORD)).headers.get("x-mfa-token");
    expect(waiting).not.toBeNull();
    await change();
    expect((await finish(waiting)).status).toBe(401);
    const newLogin = (await login("another-horse")).headers.get("x-mfa-token");
    expect((await finish(newLogin)).status).toBe(200);
  });

  test("ends logins whose old password is being checked", async () => {
    whenUserIsRead = { after: () => resetPassword(app.services, command, "another-horse") };
    const { status, headers } = await login(PASSWORD);
    expect([status, headers.get("x-mfa-token")]).toEqual([401, null]);
  });
});
