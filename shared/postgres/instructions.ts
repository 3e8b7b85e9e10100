import type { Query, Transaction } from '#shared/postgres/connect.ts'

export type Rule = {
  id: string
  /** What it is about. */
  match: string
  note: string
}

export type RuleKind = 'anti' | 'exec'

export type InstructionsRow = {
  org: string
  /** The base instructions of the service apply. */
  defaultOn: boolean
  /** The organization's own. */
  custom: string
  /** Content that is never stored. */
  antiRules: Rule[]
  /** Content that is stored as a short note only. */
  execRules: Rule[]
  updatedAt: Date
}

/** What a new organization begins with: the base instructions, no words and rules of its own. */
export async function insertInstructions(tx: Transaction, org: string): Promise<void> {
  await tx.query('insert into org_instructions (org) values ($1)', [org])
}

const rulesOf = (kind: RuleKind): string =>
  `coalesce((select json_agg(json_build_object('id', r.id, 'match', r.match, 'note', r.note)
                             order by r.position)
             from org_rules r where r.org = i.org and r.kind = '${kind}'), '[]')`

/** The instructions of an organization; every organization has some. */
export async function readInstructions(query: Query, org: string): Promise<InstructionsRow> {
  const { rows } = await query<InstructionsRow>(
    `select i.org, i.default_on as "defaultOn", i.custom, i.updated_at as "updatedAt",
            ${rulesOf('anti')} as "antiRules", ${rulesOf('exec')} as "execRules"
     from org_instructions i where i.org = $1`,
    [org],
    'instructions.read',
  )
  return rows[0]!
}

export async function updateInstructions(
  tx: Transaction,
  org: string,
  { defaultOn, custom }: { defaultOn: boolean | undefined; custom: string | undefined },
): Promise<void> {
  await tx.query(
    `update org_instructions set default_on = coalesce($2, default_on),
       custom = coalesce($3, custom), updated_at = now()
     where org = $1`,
    [org, defaultOn ?? null, custom ?? null],
  )
}

/** Puts rules in the place of all of those kinds. */
export async function replaceRules(
  tx: Transaction,
  org: string,
  rules: { [Kind in RuleKind]?: readonly Rule[] | undefined },
): Promise<void> {
  const kinds = (['anti', 'exec'] as const).filter(kind => rules[kind] !== undefined)
  const items = kinds.flatMap(kind =>
    (rules[kind] ?? []).map((rule, position) => ({ ...rule, kind, position })),
  )
  await tx.query('delete from org_rules where org = $1 and kind = any($2)', [org, kinds])
  await tx.query(
    `insert into org_rules (id, org, kind, position, match, note)
     select id, $1, kind, position, match, note from jsonb_to_recordset($2::jsonb)
       as given(id uuid, kind text, position int, match text, note text)`,
    [org, JSON.stringify(items)],
  )
}
