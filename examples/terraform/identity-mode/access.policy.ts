// Tests of the access policies. Run them with: `gatehouse test`.
import { expect, policyTest } from "@gatehouse-access/provider/policy";

policyTest("the owner is not locked out", ({ access }) => {
  expect(access).toAllow({
    login: "root",
    device: { tag: "database" },
    where: ({ principal }) => principal.role === "owner",
  });
});

policyTest("deployments reach web servers only", ({ access }) => {
  expect(access).toAllow({ user: "deploy", login: "deploy", device: { name: "web-01" } });
  expect(access).not.toAllow({ user: "deploy", device: { tag: "database" } });
  expect(access).not.toAllow({ user: "deploy", login: "root" });
});

policyTest("operators log in to web servers from the office only", ({ access }) => {
  expect(access).onlyFrom("198.51.100.0/24", { login: "support", user: "bea@example.org" });
});

policyTest("Bea confirms each login on databases", ({ access }) => {
  expect(access).toRequireApproval({ user: "bea@example.org", device: { tag: "database" } });
});

policyTest("frozen devices are closed", ({ access }) => {
  expect(access).not.toAllow({ user: "*@*", device: { name: "web-02" } });
});

policyTest("basic rules hold", ({ members, policy }) => {
  expect(members).exactlyOneOwner();
  expect(policy.identity?.policies ?? []).toAllSatisfy(
    ({ subject, action }) => action === "deny" || subject.type !== "all-members",
    "no policy allows all members",
  );
});
