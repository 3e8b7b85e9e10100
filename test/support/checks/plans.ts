import type { Query } from '#shared/storage/postgres/connect.ts'

type Plan = {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  Plans?: Plan[]
}

const scansOf = (plan: Plan): string[] => [
  ...(plan['Node Type'] === 'Seq Scan' ? [plan['Relation Name']!] : []),
  ...(plan.Plans ?? []).flatMap(scansOf),
]

const indexesOf = (plan: Plan): string[] => [
  ...(plan['Index Name'] ? [plan['Index Name']] : []),
  ...(plan.Plans ?? []).flatMap(indexesOf),
]

/** Runs statements, and notes which indexes they use, and which of them read a table from end to end. */
export function watchPlans(query: Query): {
  query: Query
  scans: { table: string; text: string }[]
  indexes: Set<string>
} {
  const indexes = new Set<string>()
  const scans: { table: string; text: string }[] = []
  return {
    scans,
    indexes,
    query: async (text, values, name) => {
      const { rows } = await query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
        `explain (format json) ${text}`,
        values,
      )
      const plan = rows[0]!['QUERY PLAN'][0]!.Plan
      for (const index of indexesOf(plan)) indexes.add(index)
      const tables = scansOf(plan)
      scans.push(...tables.map(table => ({ table, text })))
      return query(text, values, name)
    },
  }
}
