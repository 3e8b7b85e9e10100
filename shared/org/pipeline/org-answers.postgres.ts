import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** The stored answer of a model, or undefined. */
export async function findModelAnswer(
  query: Query,
  turn: string,
  question: string,
): Promise<unknown> {
  const { rows } = await query<{ answer: unknown }>(
    'select answer from org_answers where turn = $1 and question = $2',
    [turn, question],
    'org-answers.find',
  )
  return rows[0]?.answer
}

/** Stores the answer of a model, unless another worker was faster. @returns whether it did. */
export async function saveModelAnswer(
  { query }: Transaction,
  turn: string,
  question: string,
  answer: unknown,
): Promise<boolean> {
  const { rowCount } = await query(
    `insert into org_answers (turn, question, answer)
     select id, $2, $3::jsonb from org_turns where id = $1 on conflict do nothing`,
    [turn, question, JSON.stringify(answer)],
    'org-answers.keep',
  )
  return rowCount === 1
}
