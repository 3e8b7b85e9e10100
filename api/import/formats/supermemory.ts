import { asObject, asTime, firstText, isObject, type Fields } from '#api/import/formats/fields.ts'
import { jsonFormat } from '#api/import/formats/format.ts'
import type { Draft, Losses } from '#api/import/draft.ts'

/**
 * Documents and memories as supermemory's clients list them: those of version 4 (`documents.list`) and of version 5 (`list`),
 * in the spelling of the API, of TypeScript and of Python.
 */
export const supermemory = jsonFormat({
  product: 'supermemory',
  file: 'the JSON of documents.list with their content, or of list, one page a line or in an array',
  missing: 'files and pictures as such, chunks, relations, profiles and connections',
  isExportFile: name => /\.jsonl?$/.test(name),
  recognizes: value => isMemory(value) || isDocument(value),
  lists: ['documents', 'memories', 'memoryEntries', 'memory_entries', 'results'],
  open: losses => ({
    *drafts(value) {
      if (isMemory(value)) yield* memoryDrafts(value, losses)
      else yield* documentDrafts(value, losses)
    },
  }),
})

/** A field as Python's client or as the API names it: `is_latest`, `isLatest`. */
const either = (value: Fields, name: string): unknown =>
  value[name] ?? value[name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())]

const isMemory = (value: Fields): boolean =>
  firstText(value, 'memory') !== undefined && typeof either(value, 'is_latest') === 'boolean'

/** A document has a status, and a tag of its container or a place in a namespace. */
const isDocument = (value: Fields): boolean =>
  typeof value['type'] === 'string' &&
  'summary' in value &&
  (typeof value['status'] === 'string' || 'status' in asObject(value['system']))

/** The time at which a document was added, or a memory was made; version 5 has it in `system`. */
const timeOf = (value: Fields): string | undefined => {
  const system = asObject(value['system'])
  return asTime(either(value, 'created_at'), either(system, 'created_at'))
}

function* memoryDrafts(value: Fields, losses: Losses): Generator<Draft> {
  if (either(value, 'is_forgotten') === true) losses.add('memories that were forgotten')
  else if (either(value, 'is_latest') === false)
    losses.add('memories that a newer version replaced')
  else {
    yield {
      content: firstText(value, 'memory')!,
      timestamp: timeOf(value),
      expiresAt: asTime(either(value, 'forget_after')),
      metadata: {
        source: 'supermemory',
        kind: either(value, 'is_inference') === true ? 'inference' : 'memory',
        tags: either(value, 'container_tags') ?? either(value, 'container_tag'),
        ...ownMetadata(value),
      },
    }
  }
}

function* documentDrafts(value: Fields, losses: Losses): Generator<Draft> {
  const content = firstText(value, 'content')
  if (content === undefined) losses.add('documents that were listed without their content')
  else {
    yield {
      content,
      timestamp: timeOf(value),
      metadata: {
        source: 'supermemory',
        kind: 'document',
        document: either(value, 'custom_id') ?? value['id'],
        title: value['title'],
        type: value['type'],
        url: value['url'],
        tags: either(value, 'container_tags'),
        ...ownMetadata(value),
      },
    }
  }
  for (const memory of [value['memories'], either(value, 'memory_entries')].flat()) {
    if (isObject(memory) && isMemory(memory)) yield* memoryDrafts(memory, losses)
  }
}

/** What the person put beside it. */
const ownMetadata = (value: Fields): Fields => asObject(value['metadata'])
