import { createHash } from 'node:crypto'

/** What goes before a text, and fields of its call: how a model is told what the text is. */
export type InputForm = { prefix?: string; fields?: Readonly<Record<string, string>> }

/** How a model wants queries, and the texts that they are to find. */
export type EmbeddingForms = { query: InputForm; passage: InputForm }

/** Prefixes that the operator sets; an empty one switches a form off, undefined leaves the model's own. */
export type SetPrefixes = { query?: string | undefined; passage?: string | undefined }

type Family = {
  /** Part of the model's name, in lower case; the first family that matches is the model's. */
  name: RegExp
  query?: string
  passage?: string
  /** A field of the call, in place of prefixes, with its values. */
  field?: { name: string; query: string; passage: string }
}

const instruction =
  'Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:'
const representSentence = 'Represent this sentence for searching relevant passages: '

/** By the makers' own pages; a model of no family is sent texts as they are. */
const families: readonly Family[] = [
  // https://huggingface.co/BAAI/bge-m3: no instruction.
  { name: /bge-m3/ },
  // https://huggingface.co/BAAI/bge-large-zh-v1.5
  { name: /bge-(?:small|base|large)-zh/, query: '为这个句子生成表示以用于检索相关文章：' },
  // https://huggingface.co/BAAI/bge-large-en-v1.5
  { name: /bge-(?:small|base|large)/, query: representSentence },
  // https://huggingface.co/mixedbread-ai/mxbai-embed-large-v1
  { name: /mxbai-embed/, query: representSentence },
  // https://huggingface.co/Snowflake/snowflake-arctic-embed-l-v2.0
  { name: /arctic-embed2|arctic-embed-[lm]-v2/, query: 'query: ' },
  // https://huggingface.co/Snowflake/snowflake-arctic-embed-l
  { name: /arctic-embed/, query: representSentence },
  // https://huggingface.co/nomic-ai/nomic-embed-text-v1.5
  { name: /nomic-embed-text/, query: 'search_query: ', passage: 'search_document: ' },
  // https://docs.nvidia.com/nim/nemo-retriever/embedding: required by its models.
  {
    name: /nv-embed|nemotron-embed|nemoretriever/,
    field: { name: 'input_type', query: 'query', passage: 'passage' },
  },
  // https://huggingface.co/intfloat/multilingual-e5-large-instruct
  { name: /e5[-_][a-z0-9_-]{0,64}instruct|e5-mistral/, query: `${instruction} ` },
  // https://huggingface.co/intfloat/multilingual-e5-large
  { name: /(?:^|[/_-])e5[-_]/, query: 'query: ', passage: 'passage: ' },
  // https://huggingface.co/Qwen/Qwen3-Embedding-0.6B
  { name: /qwen3-embedding/, query: instruction },
  // https://huggingface.co/google/embeddinggemma-300m, https://ai.google.dev/gemini-api/docs/embeddings
  {
    name: /embedding-?gemma|gemini-embedding-2/,
    query: 'task: search result | query: ',
    passage: 'title: none | text: ',
  },
  // https://jina.ai/embeddings
  {
    name: /jina-embeddings-v[3-9]/,
    field: { name: 'task', query: 'retrieval.query', passage: 'retrieval.passage' },
  },
  // https://docs.voyageai.com/reference/embeddings-api
  {
    name: /(?:^|\/)voyage-/,
    field: { name: 'input_type', query: 'query', passage: 'document' },
  },
  // https://docs.cohere.com/reference/embed
  {
    name: /(?:^|\/)embed-(?:english|multilingual|v4)/,
    field: { name: 'input_type', query: 'search_query', passage: 'search_document' },
  },
]

/** The forms of a model, by its name without the provider. */
export function formsOfModel(name: string, set: SetPrefixes = {}): EmbeddingForms {
  const family = families.find(one => one.name.test(name.toLowerCase()))
  const formOf = (kind: 'query' | 'passage'): InputForm => {
    const prefix = set[kind] ?? family?.[kind]
    if (prefix) return { prefix }
    const { field } = family ?? {}
    return field && set[kind] === undefined ? { fields: { [field.name]: field[kind] } } : {}
  }
  return { query: formOf('query'), passage: formOf('passage') }
}

/** Without the fields of a call, for a server that refuses unknown ones. */
export const withoutFields = ({ query, passage }: EmbeddingForms): EmbeddingForms => ({
  query: query.prefix ? { prefix: query.prefix } : {},
  passage: passage.prefix ? { prefix: passage.prefix } : {},
})

/**
 * What tells forms apart in the name of a vault space; empty where there are none. `_p` begins no escaped
 * character of a model's name.
 */
export function formsMark({ query, passage }: EmbeddingForms): string {
  const given = [query, passage].map(({ prefix = '', fields = {} }) => [prefix, fields])
  if (given.every(([prefix, fields]) => prefix === '' && Object.keys(fields!).length === 0))
    return ''
  return `_p${createHash('sha256').update(JSON.stringify(given)).digest('hex').slice(0, 8)}`
}
