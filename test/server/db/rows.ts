/** What a user needs in the database. */
export function user(username: string) {
  return {
    id: username,
    username,
    name: username,
    email: `${username}@example.com`,
    passwordHash: "-",
    createdAt: new Date("2026-01-02T03:04:05.678Z"),
  };
}
