// Tests of the access policy. Run them with: `gatehouse test examples/fleet-access`.
import { expect, policyTest, untested } from "@gatehouse-access/provider/policy";

untested("fleet-staging", "a namespace for experiments, without production devices");

policyTest("contractors stay out of production", ({ access }) => {
  expect(access).not.toAllow({ key: "Contractor*", device: { tag: "prod" } });
});

policyTest("only Ana can access databases", ({ access }) => {
  expect(access).not.toAllow({
    device: { tag: "database" },
    where: ({ key }) => !key.name.startsWith("Ana,"),
  });
  expect(access).toAllow({ key: "Ana,*", login: "root", device: { tag: "database" } });
});

policyTest("only Ana can log in as root", ({ access }) => {
  expect(access).not.toAllow({ login: "root", where: ({ key }) => !key.name.startsWith("Ana,") });
});

policyTest("deployments reach web servers but no databases", ({ access }) => {
  expect(access).toAllow({ key: "Deployment", login: "deploy", device: { name: "web-*" } });
  expect(access).not.toAllow({ key: "Deployment", device: { name: "db-*" } });
});

policyTest("basic rules hold", ({ members, apiKeys, policy }) => {
  expect(members).exactlyOneOwner();
  expect(members.filter(({ role }) => role === "administrator")).toSatisfy(
    (some) => some.length === 0,
    "no administrators",
  );
  expect(apiKeys.filter(({ role }) => role !== "observer")).everyKeyExpires();
  expect(policy.keys).toAllSatisfy(({ username }) => username.startsWith("^"), "login patterns are anchored");
});
