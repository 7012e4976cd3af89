/** Tests that start processes of what was built, or read it: it is built before they run. */
export const ofBuilt = [
  "test/{endToEnd,engine,packaging,plugin,provider,review,terraform}/**/*.test.ts",
  "test/server/{pages,process}/**/*.test.ts",
  "test/server/sqlite/{backup,restore,fullDisk,secondProcess,memory}.test.ts",
  "test/sdk/service.test.ts",
  "test/docs.test.ts",
];

/** What is about PostgreSQL, and what the database itself does. */
export const onPostgresql = ["test/server/{postgresql,db}/**/*.test.ts"];

/**
 * What the provider does at a service that sends only what the specification has, and does nothing that only ours does.
 * The other files of test/provider make no request, count those to our service, or bring a service of their own;
 * lostAnswers has a sparse one beside ours, where idempotency keys make a difference.
 */
export const beforeSparse = [
  "lifecycle",
  "drift",
  "adoption",
  "tags",
  "apiKeyRotation",
  "movedObjects",
  "deviceSelectors",
  "convergence",
  "membershipEnded",
].map((name) => `test/provider/${name}.test.ts`);

/** What the provider does by the protocol of the plugin, in place of dynamic resources: all that runs programs in order. */
export const throughPlugin = [
  ...beforeSparse,
  ...["lostAnswers", "foreignAnswers", "requests", "newerService", "invitations"].map(
    (name) => `test/provider/${name}.test.ts`,
  ),
];
