import { TOTAL_COUNT } from "@gatehouse-access/sdk/contract";

/** The page that a list request selects. */
interface PageQuery {
  readonly page: number;
  readonly per_page: number;
}

/** Returns the offset and the number of rows of a page, in Prisma's form. */
export const pageOf = ({ page, per_page: perPage }: PageQuery): { skip: number; take: number } => ({
  skip: (page - 1) * perPage,
  take: perPage,
});

/** A list request, and the header of its response. */
interface PageRequest {
  readonly query: PageQuery;
  header(name: string, value: number): void;
}

/** A model of Prisma's client. */
interface ListedModel<Where, Order, Row> {
  count(args: { where: Where }): Promise<number>;
  findMany(args: { where: Where; orderBy: Order; skip: number; take: number }): Promise<Row[]>;
}

/** Reads the page of a list that a request selects. The header `X-Total-Count` gets the number of rows in all pages. */
export async function readPage<Where, Order, Row>(
  { query, header }: PageRequest,
  model: ListedModel<Where, Order, Row>,
  { where, orderBy }: { readonly where: Where; readonly orderBy: Order },
): Promise<Row[]> {
  const [total, rows] = await Promise.all([
    model.count({ where }),
    model.findMany({ where, orderBy, ...pageOf(query) }),
  ]);
  header(TOTAL_COUNT, total);
  return rows;
}
