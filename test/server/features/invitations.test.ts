import { beforeAll, describe, expect, test } from "vitest";
import { expectError } from "../http/answers.ts";
import { withSharedApp } from "../http/appOfTest.ts";
import { PASSWORD, PUBLIC_URL, type TestUser } from "../http/testApp.ts";

const WEEK = 7 * 24 * 3600;

/** Parses the link of an invitation. */
function partsOf(link: string) {
  const url = new URL(link);
  const of = (name: string) => url.searchParams.get(name) ?? "";
  return { url, tenant: of("tenant-id"), id: of("user-id"), email: of("email"), sig: of("sig") };
}
type Invitation = ReturnType<typeof partsOf>;

const account = (email: string, sig?: string) => {
  const username = email.split("@")[0] ?? "";
  return {
    name: "A Person",
    email,
    username,
    password: PASSWORD,
    email_marketing: false,
    ...(sig && { sig }),
  };
};

describe("on a cloud instance", () => {
  let owner: TestUser;
  let elsewhere: TestUser;
  const app = withSharedApp({ edition: "cloud" });
  beforeAll(async () => {
    owner = await app.user("owner", "lab");
    elsewhere = await app.user("elsewhere", "elsewhere");
  });

  const inviteBy = async (
    id: "inviteMember" | "generateInvitationLink",
    email: string,
    role = "observer",
    by = owner,
  ) => app.call(id, { token: await app.tokenOf(by), params: { tenant: by.tenant }, body: { email, role } });
  /** Returns the link in the last mail to an address. */
  async function mailedTo(email: string): Promise<Invitation> {
    await app.deliverMails();
    const mail = app.mails.findLast(({ to }) => to === email);
    return partsOf(/https:\S+/.exec(mail?.text ?? "")?.[0] ?? "");
  }
  /** Invites a user by mail. Returns the link in the mail. */
  async function invite(email: string, role = "observer", by = owner): Promise<Invitation> {
    const { status, text } = await inviteBy("inviteMember", email, role, by);
    expect(status, text).toBe(200);
    return mailedTo(email);
  }
  const accept = async ({ tenant, sig }: Invitation, user: Pick<TestUser, "id" | "username" | "tenant">) =>
    (await app.call("acceptInvite", { token: await app.tokenOf(user), params: { tenant }, body: { sig } }))
      .status;
  const statusOf = async ({ tenant, id, sig }: Invitation) => {
    const { status, body } = await app.call("lookupUserStatus", { params: { tenant, id }, query: { sig } });
    return status === 200 ? body.status : status;
  };
  const stored = ({ tenant, id }: Invitation) =>
    app.services.db.member.findUnique({ where: { tenantId_userId: { tenantId: tenant, userId: id } } });

  test("accepts an invitation from a mail, once", async () => {
    const user = await app.user("ana");
    const invitation = await invite(user.email, "operator");
    const { url, tenant, id, email } = invitation;
    expect([url.origin, url.pathname, tenant, id, email]).toEqual([
      PUBLIC_URL,
      "/accept-invite",
      owner.tenant,
      user.id,
      user.email,
    ]);
    expect((await user.call("getToken", { params: { tenant } })).status).toBe(404);
    expect(await statusOf(invitation)).toBe("confirmed");
    expect(await accept(invitation, user)).toBe(200);
    expect(await stored(invitation)).toMatchObject({ status: "accepted", role: "operator", expiresAt: null });
    const session = await user.call("getToken", { params: { tenant } });
    expect(session.body).toMatchObject({ tenant, role: "operator" });
    expect([await accept(invitation, user), await statusOf(invitation)]).toEqual([404, 404]);
    expect((await inviteBy("inviteMember", user.email)).status).toBe(409);
    const trail = await owner.call("getAuditTrail", { params: { tenant } });
    expect(trail.body[0]).toMatchObject({ operation: "acceptInvite", actor: { id: user.id } });
    expect(trail.text).not.toContain(invitation.sig);
  });

  test("accepts a sig only for its user and its namespace", async () => {
    const [one, two, three] = [await app.user("bob"), await app.user("carl"), await app.user("dora")];
    const [ofOne, ofTwo] = [await invite(one.email), await invite(two.email)];
    const there = await invite(one.email, "administrator", elsewhere);
    expect(await accept({ ...ofOne, sig: ofTwo.sig }, one)).toBe(403);
    expect(await accept(ofOne, three)).toBe(403);
    expect(await accept({ ...ofOne, sig: there.sig }, one)).toBe(403);
    expect(await accept({ ...ofOne, sig: "nonsense" }, one)).toBe(403);
    expect(await accept({ ...ofOne, sig: "nonsense" }, three)).toBe(404);
    expect(await statusOf({ ...ofOne, sig: ofTwo.sig })).toBe(403);
    expect((await stored(ofOne))?.status).toBe("pending");
    expect([await accept(there, one), (await stored(ofOne))?.status]).toEqual([200, "pending"]);
  });

  test("expires an invitation after seven days, and allows a new one with another role", async () => {
    const user = await app.user("emil");
    const { body } = await inviteBy("inviteMember", user.email);
    const first = await mailedTo(user.email);
    const { status, added_at, expires_at } = body.members.find(({ id }: { id: string }) => id === user.id);
    expect(status).toBe("pending");
    expect((await inviteBy("inviteMember", user.email)).status).toBe(409);
    expect(Date.parse(expires_at) - Date.parse(added_at)).toBe(WEEK * 1000);
    app.pass(WEEK + 1);
    expect([await accept(first, user), await statusOf(first)]).toEqual([404, 404]);
    const second = await invite(user.email, "administrator");
    expect(await accept(first, user)).toBe(403);
    expect(await accept(second, user)).toBe(200);
    expect((await stored(second))?.role).toBe("administrator");
  });

  test("voids a removed invitation, even after a new invitation", async () => {
    const user = await app.user("fred");
    const first = await invite(user.email);
    const removal = { token: await app.tokenOf(owner), params: { tenant: owner.tenant, uid: user.id } };
    expect((await app.call("removeMember", removal)).status).toBe(200);
    expect([await accept(first, user), await statusOf(first)]).toEqual([404, 404]);
    await invite(user.email);
    expect(await accept(first, user)).toBe(403);
  });

  test("lets a new user register with the mailed sig, then accept", async () => {
    const invitation = await invite("gina@example.org");
    expect(await statusOf(invitation)).toBe("invited");
    const { email, sig } = invitation;
    expect((await app.call("registerUser", { body: account("other@example.org", sig) })).status).toBe(401);
    const { status, body } = await app.call("registerUser", { body: account(email, sig) });
    expect([status, body]).toMatchObject([200, { id: invitation.id, user: "gina", tenant: "" }]);
    expect(await statusOf(invitation)).toBe("confirmed");
    expect((await app.call("registerUser", { body: account(email, sig) })).status).toBe(401);
    expect(await accept(invitation, { id: body.id, username: "gina", tenant: "" })).toBe(200);
  });

  test("requires a confirmation if an invited address registers without the sig", async () => {
    const invitation = await invite("hugo@example.org");
    const { status, text } = await app.call("registerUser", { body: account("hugo@example.org") });
    expect([status, text]).toEqual([200, ""]);
    expect(await statusOf(invitation)).toBe("not-confirmed");
    expect((await app.call("login", { body: { username: "hugo", password: PASSWORD } })).status).toBe(403);
  });

  test("requires a confirmation of an address with a link that the inviting member has seen", async () => {
    const { body } = await inviteBy("generateInvitationLink", "ida@example.org");
    const invitation = partsOf(body.link);
    expect(invitation.url.origin).toBe(PUBLIC_URL);
    const answer = await app.call("registerUser", { body: account("ida@example.org", invitation.sig) });
    expect([answer.status, answer.text]).toEqual([200, ""]);
    expect((await app.call("login", { body: { username: "ida", password: PASSWORD } })).status).toBe(403);
    await app.deliverMails();
    expect(app.mails.at(-1)).toMatchObject({ to: "ida@example.org", subject: "Confirm your account" });
  });

  test("voids the earlier link when it creates a new link", async () => {
    const user = await app.user("jan");
    const [first, second] = [
      partsOf((await inviteBy("generateInvitationLink", user.email)).body.link),
      partsOf((await inviteBy("generateInvitationLink", user.email, "operator")).body.link),
    ];
    expect([await accept(first, user), await accept(second, user)]).toEqual([403, 200]);
    expect((await stored(second))?.role).toBe("operator");
    expect((await inviteBy("generateInvitationLink", user.email)).status).toBe(409);
    expect((await inviteBy("generateInvitationLink", "x@example.org", "owner")).status).toBe(403);
  });

  test("treats an invited user like a missing account: no login, no recovery and no mail about an account", async () => {
    await invite("karl@example.org");
    const before = app.mails.length;
    const username = "karl@example.org";
    expect((await app.call("login", { body: { username, password: PASSWORD } })).status).toBe(401);
    for (const id of ["recoverPassword", "resendEmail"] as const) await app.call(id, { body: { username } });
    await app.deliverMails();
    expect(app.mails.length).toBe(before);
  });

  test("limits open invitations of a namespace to a hundred", async () => {
    const by = await app.user("many", "many");
    const now = app.services.now();
    const expiresAt = new Date(now.getTime() + 1000 * WEEK);
    for (let count = 0; count < 100; count += 1) {
      const id = count.toString(16).padStart(24, "0");
      const user = { id, status: "invited", username: `invited:${id}`, name: "", email: `${id}@example.org` };
      await app.services.db.user.create({ data: { ...user, passwordHash: "", createdAt: now } });
      const member = { tenantId: by.tenant, userId: id, role: "observer", status: "pending" };
      await app.services.db.member.create({ data: { ...member, addedAt: now, expiresAt } });
    }
    expectError(
      await inviteBy("inviteMember", "one-more@example.org", "observer", by),
      403,
      "invitations: the namespace has the maximum of 100 open invitations",
    );
    expect(await app.services.db.user.count({ where: { email: "one-more@example.org" } })).toBe(0);
  });

  test("creates one invitation and one mail for an Idempotency-Key", async () => {
    const user = await app.user("lena");
    const before = app.mails.length;
    const request = { params: { tenant: owner.tenant }, body: { email: user.email, role: "observer" } };
    for (let count = 0; count < 2; count += 1) {
      const headers = { "idempotency-key": "invite-lena" };
      const answer = await app.call("inviteMember", { ...request, token: await app.tokenOf(owner), headers });
      expect(answer.status).toBe(200);
    }
    await app.deliverMails();
    expect(app.mails.length).toBe(before + 1);
  });
});

describe("on an enterprise instance", () => {
  let owner: TestUser;
  const app = withSharedApp();
  beforeAll(async () => {
    owner = await app.user("owner", "lab");
  });

  const linkFor = (email: string, role = "observer") =>
    owner.call("generateInvitationLink", { body: { email, role } });

  test("rejects registration without an invitation", async () => {
    expect((await app.call("registerUser", { body: account("eve@example.org") })).status).toBe(401);
  });

  test("adds a user who registers with a link immediately", async () => {
    const { url, email, sig } = partsOf((await linkFor("ana@example.org", "operator")).body.link);
    expect(url.origin).toBe(app.url);
    const { status, body } = await app.call("registerUser", { body: account(email, sig) });
    expect([status, body]).toMatchObject([200, { tenant: owner.tenant, role: "operator" }]);
    expect((await app.call("getDevices", { token: body.token })).status).toBe(200);
    expect((await app.call("registerUser", { body: account("ana2@example.org", sig) })).status).toBe(401);
  });

  test("adds a user with an account immediately, with a link to the login", async () => {
    const user = await app.user("bob");
    expect((await linkFor(user.email)).body).toEqual({ link: `${app.url}/login` });
    const session = await user.call("getToken", { params: { tenant: owner.tenant } });
    expect(session.body).toMatchObject({ role: "observer" });
    expect((await linkFor(user.email)).status).toBe(409);
  });

  test("does not let inviteMember add a user who is only invited", async () => {
    await linkFor("carl@example.org");
    const other = await app.user("other", "other");
    const { status } = await other.call("inviteMember", {
      body: { email: "carl@example.org", role: "administrator" },
    });
    expect(status).toBe(404);
  });
});
