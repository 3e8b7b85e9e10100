import { asList, asObject, asTime, firstText, type Fields } from '#api/import/formats/fields.ts'
import { jsonFormat } from '#api/import/formats/format.ts'

/** What mem0's `get_all` answers, its platform's pages and exports, and OpenMemory's list. */
export const mem0 = jsonFormat({
  product: 'mem0',
  file: 'the JSON that get_all answered, one page a line or in an array',
  missing: 'relations of the graph, the history of a memory, and its hash and score',
  isExportFile: name => /\.jsonl?$/.test(name),
  recognizes: value => textOf(value) !== undefined,
  lists: ['results', 'memories', 'items', 'data'],
  open: losses => ({
    *drafts(value) {
      const content = textOf(value)
      const [updated, created] = [either(value, 'updated_at'), either(value, 'created_at')]
      if (updated && updated !== created) losses.add('times at which a memory was changed')
      yield {
        content: content ?? '',
        ...(value['role'] === 'assistant' && { role: 'assistant' as const }),
        timestamp: asTime(created, updated),
        expiresAt: asTime(either(value, 'expiration_date')),
        metadata: {
          source: 'mem0',
          ...asObject(value['metadata'] ?? value['metadata_']),
          user_id: either(value, 'user_id'),
          agent_id: either(value, 'agent_id'),
          run_id: either(value, 'run_id'),
          app_id: either(value, 'app_id') ?? either(value, 'app_name'),
          speaker: either(value, 'actor_id'),
          tags: categoriesOf(value),
        },
      }
    },
  }),
})

/** A field as Python's and the platform's client name it, or as that for TypeScript does: `created_at`, `createdAt`. */
const either = (value: Fields, name: string): unknown =>
  value[name] ?? value[name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())]

/** mem0 calls the text `memory`, OpenMemory `content`; a message of a chat has a `content` too. */
const textOf = (value: Fields): string | undefined =>
  firstText(value, 'memory') ??
  (Array.isArray(value['categories']) || 'app_name' in value
    ? firstText(value, 'content', 'text')
    : undefined)

const categoriesOf = (value: Fields): string[] =>
  asList(value['categories']).flatMap(category =>
    typeof category === 'string' ? [category] : (firstText(asObject(category), 'name') ?? []),
  )
