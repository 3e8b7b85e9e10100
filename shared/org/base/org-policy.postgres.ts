import type { Query } from '#shared/storage/postgres/connect.ts'
import {
  toActiveRedaction,
  type RedactionPolicy,
  type StoredRedactionPolicy,
} from '#shared/privacy/apply-redaction.ts'

/** Rules about content. */
export type PolicyRule = { match: string; note: string }

export type TagQuestion = {
  id: string
  label: string
  question: string
  examples: string[]
  negatives: string[]
  /** Labels it had before. */
  former: string[]
}

/** The current policy, which every pass reads. */
export type OrgPolicy = {
  org: string
  /** The owner's account: its provider keys are used, and it pays. */
  account: string
  /** The shared vault, in its current epoch. */
  vault: string
  epoch: number
  revision: number
  provider: string
  extractModel: string
  classifyModel: string
  /** The redaction of shared memories. */
  redaction: RedactionPolicy | null
  defaultOn: boolean
  custom: string
  antiRules: PolicyRule[]
  execRules: PolicyRule[]
  tags: TagQuestion[]
}

/** The policy of an organization; undefined once it is removed. */
export async function findOrgPolicy(query: Query, org: string): Promise<OrgPolicy | undefined> {
  const { rows } = await query<
    Omit<OrgPolicy, 'redaction'> & { redaction: StoredRedactionPolicy | null }
  >(
    `select o.id as org, o.account, o.vault, v.epoch, v.revision::float8 as revision,
            o.processor_provider as provider,
            o.extract_model as "extractModel", o.classify_model as "classifyModel",
            coalesce(o.redaction, a.redaction) as redaction,
            coalesce(i.default_on, true) as "defaultOn", coalesce(i.custom, '') as custom,
            ${rulesSql('anti')} as "antiRules", ${rulesSql('exec')} as "execRules",
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

const rulesSql = (kind: 'anti' | 'exec'): string =>
  `coalesce((select json_agg(json_build_object('match', r.match, 'note', r.note) order by r.position)
             from org_rules r where r.org = o.id and r.kind = '${kind}'), '[]')`

/** The effective redaction of an organization and its own; undefined once it is removed. */
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

/** Writes the policy of an organization; null leaves it to the account. @returns whether it changed. */
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
