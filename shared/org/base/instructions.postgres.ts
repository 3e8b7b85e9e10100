import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { missingOrganization } from '#shared/org/base/orgs.postgres.ts'

export type InstructionRule = {
  id: string
  /** The words that the rule matches. */
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
  antiRules: InstructionRule[]
  /** Content that is stored as a short note only. */
  execRules: InstructionRule[]
  updatedAt: Date
}

/** What a new organization begins with: the base instructions, and no text and rules of its own. */
export async function insertInstructions(tx: Transaction, org: string): Promise<void> {
  await tx.query('insert into org_instructions (org) values ($1)', [org])
}

const rulesSql = (kind: RuleKind): string =>
  `coalesce((select json_agg(json_build_object('id', r.id, 'match', r.match, 'note', r.note)
                             order by r.position)
             from org_rules r where r.org = o.id and r.kind = '${kind}'), '[]')`

/**
 * The instructions of an organization; the initial ones where none are stored.
 *
 * @throws Refusal `missing` when there is no such organization.
 */
export async function readInstructions(query: Query, org: string): Promise<InstructionsRow> {
  const { rows } = await query<InstructionsRow>(
    `select o.id as org, coalesce(i.default_on, true) as "defaultOn", coalesce(i.custom, '') as custom,
            coalesce(i.updated_at, o.created_at) as "updatedAt",
            ${rulesSql('anti')} as "antiRules", ${rulesSql('exec')} as "execRules"
     from orgs o left join org_instructions i on i.org = o.id where o.id = $1`,
    [org],
    'instructions.read',
  )
  if (rows[0]) return rows[0]
  throw missingOrganization()
}

export async function updateInstructions(
  tx: Transaction,
  org: string,
  { defaultOn, custom }: { defaultOn: boolean | undefined; custom: string | undefined },
): Promise<void> {
  await tx.query(
    `insert into org_instructions as i (org, default_on, custom)
     values ($1, coalesce($2, true), coalesce($3, ''))
     on conflict (org) do update set default_on = coalesce($2, i.default_on),
       custom = coalesce($3, i.custom), updated_at = now()`,
    [org, defaultOn ?? null, custom ?? null],
  )
}

/** Replaces all rules of the given kinds. */
export async function replaceRules(
  tx: Transaction,
  org: string,
  rules: { [Kind in RuleKind]?: readonly InstructionRule[] | undefined },
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
