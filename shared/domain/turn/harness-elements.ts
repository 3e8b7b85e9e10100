/** Why a text in a message is left out of memory. */
export type HarnessReason =
  /** Instructions of a program to its model. */
  | 'reminder'
  /** A command of a program's interface, and its output. */
  | 'command'
  /** Files, documents, retrieved or earlier text that a program quotes. */
  | 'context'
  /** A prompt around the user's words. */
  | 'template'
  /** Calls of tools and what they returned. */
  | 'tool'
  /** What a model wrote for itself. */
  | 'thinking'

/** Elements with which a program wraps text in a user's message. */
type ElementForm = {
  /** Where they were seen. */
  source: string
  /** In kebab case; a `*` at the end stands for any ending. */
  names: readonly string[]
  /** Why the text inside is left out; undefined where it is the user's own words. */
  reason: HarnessReason | undefined
}

const elementForms: readonly ElementForm[] = [
  {
    source: 'Claude Code',
    names: ['system-reminder', 'policy-spec', 'total-tokens', 'new-diagnostics', 'budget-*'],
    reason: 'reminder',
  },
  {
    source: 'Claude Code, commands',
    names: ['command-name', 'command-message', 'command-contents', 'local-command-*'],
    reason: 'command',
  },
  { source: 'Claude Code, arguments of a command', names: ['command-args'], reason: undefined },
  {
    source: 'Claude Code, shell',
    names: ['bash-input', 'bash-stdout', 'bash-stderr'],
    reason: 'tool',
  },
  { source: 'Claude Code, notes', names: ['user-memory-input'], reason: undefined },
  {
    source: 'Claude Code, editor and tools',
    names: [
      'ide-opened-file',
      'ide-selection',
      'ide-diagnostics',
      'user-prompt-submit-hook',
      'session-start-hook',
      'task-notification',
      'tool-use-error',
      'persisted-output',
    ],
    reason: 'context',
  },
  {
    source: 'Codex',
    names: [
      'environment-context',
      'user-instructions',
      'user-shell-command',
      'turn-aborted',
      'permissions',
      'collaboration-mode',
      'skill',
      'skills-instructions',
      'apps-instructions',
      'subagent-notification',
    ],
    reason: 'context',
  },
  {
    source: 'Gemini CLI',
    names: ['session-context', 'hook-context', 'loaded-context'],
    reason: 'context',
  },
  {
    source: 'Cursor',
    names: [
      'additional-data',
      'attached-files',
      'current-file',
      'open-and-recently-viewed-files',
      'project-layout',
      'git-status',
      'cursor-rules-context',
      'manually-attached-skills',
      'custom-instructions',
      'user-info',
      'linter-errors',
      'edit-history',
    ],
    reason: 'context',
  },
  {
    source: 'Cursor, Open WebUI, Copilot: the user between the tags',
    names: [
      'user-query',
      'user-request',
      'user-message',
      'user-input',
      'user-question',
      'user-prompt',
    ],
    reason: undefined,
  },
  {
    source: 'Copilot',
    names: [
      'editor-context',
      'reminder-instructions',
      'workspace-info',
      'environment-info',
      'attachments',
      'attachment',
      'repo-context',
    ],
    reason: 'context',
  },
  {
    source: 'Cline, Roo Code',
    names: [
      'environment-details',
      'file-content',
      'folder-content',
      'explicit-instructions',
      'final-file-content',
    ],
    reason: 'context',
  },
  {
    source: 'Cline, Roo Code: the user between the tags',
    names: ['task', 'feedback'],
    reason: undefined,
  },
  {
    source: 'opencode',
    names: ['env', 'files', 'directories', 'available-skills'],
    reason: 'context',
  },
  {
    source: 'LibreChat, LobeChat, Open WebUI',
    names: [
      'file',
      'files-info',
      'context-instruction',
      'knowledge',
      'knowledge-base',
      'memory-user-context',
      'user-context',
    ],
    reason: 'context',
  },
  { source: 'our own profile', names: ['memory-profile'], reason: 'context' },
  {
    source: 'retrieval templates',
    names: [
      'context',
      'contexts',
      'document',
      'documents',
      'sources',
      'search-results',
      'search-result',
      'retrieved-context',
      'retrieved-documents',
      'retrieved-chunks',
      'passages',
      'excerpts',
      'chat-history',
      'conversation-history',
      'previous-conversation',
      'output-format',
      'response-format',
    ],
    reason: 'context',
  },
  { source: 'retrieval templates: the question', names: ['question', 'query'], reason: undefined },
  {
    source: 'open reasoning models',
    names: ['think', 'thinking', 'thought', 'reasoning', 'antml-thinking'],
    reason: 'thinking',
  },
  {
    source: 'tool calls in the text',
    names: [
      'tool-call',
      'tool-calls',
      'tool-response',
      'tool-result',
      'tool-results',
      'function-call',
      'function-calls',
      'function-result',
      'function-results',
      'antml-function-calls',
    ],
    reason: 'tool',
  },
]

const formByName = new Map(elementForms.flatMap(form => form.names.map(name => [name, form])))
const formsByBeginning = elementForms.flatMap(form =>
  form.names
    .filter(name => name.endsWith('*'))
    .map(name => ({ beginning: name.slice(0, -1), form })),
)

/** The form of an element; undefined for names that no known program uses. */
export const elementForm = (name: string): ElementForm | undefined =>
  formByName.get(name) ?? formsByBeginning.find(({ beginning }) => name.startsWith(beginning))?.form

/** All names of the table, for its test. */
export const harnessElementNames: readonly string[] = elementForms.flatMap(({ names }) => names)
