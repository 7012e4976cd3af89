/** Tests that start processes of what was built, or read it: it is built before they run. */
export const ofBuilt = [
  "test/{agent,deploy,endToEnd,engine,gateway,packaging,pipelines,plugin,provider,review,terraform}/**/*.test.ts",
  "test/server/{pages,process}/**/*.test.ts",
  "test/server/sqlite/{backup,restore,fullDisk,listFlood,secondProcess,memory}.test.ts",
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
  ...["lostAnswers", "foreignAnswers", "requests", "newerService", "invitations", "namespaceSettings"].map(
    (name) => `test/provider/${name}.test.ts`,
  ),
];

/**
 * What the provider does by the protocol of Terraform: the files of {@link throughPlugin}, without the two that take the
 * most time and find nothing that the others do not. What Terraform does otherwise by nature is told apart in them:
 * - it tells no provider what a resource is called: errors about two with one object name their ids at most, a generated
 *   name begins with the kind, and no later run knows what an interrupted one made, so that an equal rule is in the way;
 * - it destroys an object before it makes the one that takes its place, and asks nobody about what it is told to replace;
 * - it begins with the deletion of what the configuration does not have any more, whoever has the object by the end;
 * - its states hold no secret;
 * - an API key is replaced by one update, whose plan does not say why.
 */
export const throughTerraform = throughPlugin.filter((file) => !/(convergence|lostAnswers)\.test/.test(file));

/** True where programs meet a service that sends only what the specification has: see vitest.config.ts. */
export const isSparse = process.env.TEST_SERVICE === "sparse";
