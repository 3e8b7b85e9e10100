import type { Query } from '#shared/storage/postgres/connect.ts'

type Plan = { 'Node Type': string; 'Relation Name'?: string; Plans?: Plan[] }

const scansOf = (plan: Plan): string[] => [
  ...(plan['Node Type'] === 'Seq Scan' ? [plan['Relation Name']!] : []),
  ...(plan.Plans ?? []).flatMap(scansOf),
]

/** Runs statements, and notes which of them would read a table from end to end. */
export function watchPlans(query: Query): {
  query: Query
  scans: { table: string; text: string }[]
} {
  const scans: { table: string; text: string }[] = []
  return {
    scans,
    query: async (text, values, name) => {
      const { rows } = await query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
        `explain (format json) ${text}`,
        values,
      )
      const tables = scansOf(rows[0]!['QUERY PLAN'][0]!.Plan)
      scans.push(...tables.map(table => ({ table, text })))
      return query(text, values, name)
    },
  }
}
