import { knownMarks } from '#shared/domain/turn/known-marks.ts'

/**
 * Elements of prompt templates that no program owns, in kebab case: what is in them is stored and not asked with. From
 * Anthropic's guide to prompts with long documents, LangChain's rag prompts and LlamaIndex's text_qa_template.
 */
const quotedNames = [
  'context',
  'contexts',
  'document',
  'documents',
  'sources',
  'passages',
  'excerpts',
  'file',
  'files',
  'knowledge',
]

/** Elements of such templates around the question itself. */
const questionNames = [
  'question',
  'query',
  'user-query',
  'user-question',
  'user-request',
  'user-message',
  'user-input',
  'user-prompt',
]

const nameOf = (element: string): string =>
  /^[\w.:-]+/
    .exec(element)![0]
    .replaceAll(/([a-z])([A-Z])/g, '$1-$2')
    .replaceAll(/[_.:]/g, '-')
    .toLowerCase()

const ofUser = knownMarks.filter(({ of }) => of !== 'model')
const left = new Set([
  ...quotedNames,
  ...ofUser.flatMap(({ elements = [] }) => elements.map(nameOf)),
])
const around = new Set([
  ...questionNames,
  ...ofUser.flatMap(({ around = [] }) => around.map(nameOf)),
])

/** Whether an element of this name is asked with: `words`, `left-out`, or undefined where nothing is known of it. */
export const promptElementKind = (name: string): 'words' | 'left-out' | undefined =>
  around.has(name) ? 'words' : left.has(name) ? 'left-out' : undefined
