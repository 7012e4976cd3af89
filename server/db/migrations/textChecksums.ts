/**
 * SHA-256 of the files of the first migrations, on SQLite and on PostgreSQL. The first versions of the service stored
 * the checksum of the whole file in the table `_migration`. Later versions store the checksum of the statements
 * instead. They accept a checksum from this list for a migration that one of the first versions applied. The list is
 * frozen, because later versions no longer store checksums of whole files.
 */
export const TEXT_CHECKSUMS: Readonly<Record<string, readonly string[]>> = {
  "0001_initial": [
    "247ca6d3f9cb07f9dfdace20ef6343223edf4a2dde3f11ed38560b927f138580",
    "55ac42f765222bdf06c49dbc8f8ed63ef5e12564d319d321025f81fc4df9a3d3",
  ],
  "0002_access_ends": [
    "7594d71eaeb0a2f3014fabb3e297b22a1cd40cf4b1a1fb6b002bfa555dabe2f6",
    "190efa8625fe493eeb1816aa81136f49b31c1aaed4e94e52f49f45732c5e42bd",
  ],
  "0003_trusted_workloads": [
    "6cc76eeb54f99293f543aa4b11e33be5105f537a8ecb1a2103628581fbe58996",
    "4f4807a250c7cce32885321e949922fe3bb77bf29da890a3160e4c6e0cd7559e",
  ],
  "0004_token_uses": [
    "6d6cb5ecd312424d65158aec143107766055fc4aeb99bf6362df97b8a2d90dc2",
    "2aee54634adc933a029decc692b780d5be47570b68b2a4de2534d871be4beb6c",
  ],
  "0005_tags": [
    "acdcba2cfd3ce5bdd0647e6cce37aef343c67639faf16454da561230c493c5d6",
    "6f699607dd48ff08d3ca24acce026c8ded33b6905316250750f944ddd2493c41",
  ],
};
