import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import type { TagRow } from '#shared/org/base/tags.postgres.ts'
import { missingOrganization } from '#shared/org/base/orgs.postgres.ts'
import {
  toActiveRedaction,
  type RedactionPolicy,
  type StoredRedactionPolicy,
} from '#shared/privacy/apply-redaction.ts'

/** A rule about content: the words that it matches, and a note for the model. */
export type PolicyRule = { match: string; note: string }

export type InstructionRule = PolicyRule & { id: string }

export type InstructionsRow = {
  org: string
  /** The base instructions of the service apply. */
  defaultOn: boolean
  custom: string
  /** Content that is never stored. */
  antiRules: InstructionRule[]
  /** Content that is stored as a short note only. */
  execRules: InstructionRule[]
  updatedAt: Date
}

export type TagQuestion = Omit<TagRow, 'org' | 'createdAt'>

/** The policy that every pass reads. */
export type OrgPolicy = {
  org: string
  /** The owner's account, whose provider keys are used and which pays. */
  account: string
  /** The shared vault, in its current epoch. */
  vault: string
  epoch: number
  revision: number
  provider: string
  extractModel: string
  classifyModel: string
  redaction: RedactionPolicy | null
  defaultOn: boolean
  custom: string
  antiRules: PolicyRule[]
  execRules: PolicyRule[]
  tags: TagQuestion[]
}

/** Reads the current policy; undefined once the organization is removed. */
export async function findOrgPolicy(query: Query, org: string): Promise<OrgPolicy | undefined> {
  const { rows } = await query<
    Omit<OrgPolicy, 'redaction'> & { redaction: StoredRedactionPolicy | null }
  >(
    `select o.id as org, o.account, o.vault, v.epoch, v.revision,
            o.processor_provider as provider,
            o.extract_model as "extractModel", o.classify_model as "classifyModel",
            coalesce(o.redaction, a.redaction) as redaction,
            ${instructionsSql},
            coalesce((select json_agg(json_build_object('id', t.id, 'label', t.label,
                        'question', t.question, 'examples', t.examples, 'negatives', t.negatives,
                        'former', t.former)
                        order by t.created_at, t.id)
                      from org_tags t where t.org = o.id), '[]') as tags
     from orgs o join accounts a on a.id = o.account join vaults v on v.id = o.vault
     left join org_instructions i on i.org = o.id
     where o.id = $1`,
    [org],
    'org-policy.find',
  )
  return rows[0] && { ...rows[0], redaction: toActiveRedaction(rows[0].redaction) }
}

function rulesSql(kind: string): string {
  return `coalesce((select json_agg(json_build_object('id', r.id, 'match', r.match, 'note', r.note)
                                    order by r.position)
                    from org_rules r where r.org = o.id and r.kind = '${kind}'), '[]') as "${kind}Rules"`
}

/** SQL: the instructions of the organization `o`, joined as `i`; defaults where none are stored. */
const instructionsSql = `coalesce(i.default_on, true) as "defaultOn", coalesce(i.custom, '') as custom,
  ${['anti', 'exec'].map(rulesSql).join(', ')}`

/** Stores the instructions of a new organization. */
export async function insertInstructions(tx: Transaction, org: string): Promise<void> {
  await tx.query('insert into org_instructions (org) values ($1)', [org])
}

/**
 * Reads the instructions; defaults where none are stored.
 *
 * @throws Refusal `missing` when there is no such organization.
 */
export async function readInstructions(query: Query, org: string): Promise<InstructionsRow> {
  const { rows } = await query<InstructionsRow>(
    `select o.id as org, coalesce(i.updated_at, o.created_at) as "updatedAt", ${instructionsSql}
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

export async function replaceRules(
  tx: Transaction,
  org: string,
  rules: {
    anti?: readonly InstructionRule[] | undefined
    exec?: readonly InstructionRule[] | undefined
  },
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

/** Reads an organization's own redaction and the effective one; undefined once it is removed. */
export async function findOrgRedaction(
  query: Query,
  org: string,
): Promise<
  { own: StoredRedactionPolicy | null; effective: StoredRedactionPolicy | null } | undefined
> {
  const { rows } = await query<{
    own: StoredRedactionPolicy | null
    effective: StoredRedactionPolicy | null
  }>(
    `select o.redaction as own, coalesce(o.redaction, a.redaction) as effective
     from orgs o join accounts a on a.id = o.account where o.id = $1`,
    [org],
    'policies.org',
  )
  return rows[0]
}

/** Writes the redaction of an organization; null leaves it to the account. @returns whether it changed. */
export async function putOrgRedaction(
  query: Query,
  org: string,
  redaction: StoredRedactionPolicy | null,
): Promise<boolean> {
  const { rows } = await query<{ changed: boolean }>(
    `with former as (select id, redaction from orgs where id = $1 for no key update)
     update orgs o set redaction = $2, updated_at = now()
     from former where o.id = former.id
     returning former.redaction is distinct from o.redaction as changed`,
    [org, redaction && JSON.stringify(redaction)],
  )
  return rows[0]?.changed ?? false
}
