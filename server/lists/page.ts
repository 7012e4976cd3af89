import { TOTAL_COUNT } from "@gatehouse-access/sdk/contract";

/** The page that a list request selects. */
interface PageQuery {
  readonly page: number;
  readonly per_page: number;
}

/** Returns the offset and the number of rows of a page, as arguments for Prisma. */
export const pageOf = ({ page, per_page: perPage }: PageQuery): { skip: number; take: number } => ({
  skip: (page - 1) * perPage,
  take: perPage,
});

/** A list request, and a function that sets a header of the response. */
interface PageRequest {
  readonly query: PageQuery;
  header(name: string, value: number): void;
}

/** A model of Prisma's client. */
interface ListedModel<Where, Order, Row> {
  count(args: { where: Where }): Promise<number>;
  findMany(args: {
    where: Where;
    orderBy: Order;
    select?: Partial<Record<keyof Row, true>>;
    skip: number;
    take: number;
  }): Promise<Row[]>;
}

/**
 * Reads the page of a list that a request selects. Sets the header `X-Total-Count` to the number of rows in all pages.
 * @param rest `select`: the columns of the result. By default, all columns.
 */
export async function readPage<
  Where,
  Order,
  Row,
  Select extends Partial<Record<keyof Row, true>> = Record<keyof Row, true>,
>(
  { query, header }: PageRequest,
  model: ListedModel<Where, Order, Row>,
  { where, ...rest }: { readonly where: Where; readonly orderBy: Order; readonly select?: Select },
): Promise<Pick<Row, keyof Select & keyof Row>[]> {
  const [total, rows] = await Promise.all([
    model.count({ where }),
    model.findMany({ where, ...rest, ...pageOf(query) }),
  ]);
  header(TOTAL_COUNT, total);
  return rows;
}
