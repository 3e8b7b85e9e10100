/** What a program says by a hook, whatever it calls it. */
export type HookEvent = {
  kind: 'begin' | 'prompt' | 'answer' | 'end' | 'other'
  /** The program's own name of the event. */
  name: string
  session: string
  /** The program's own id of the turn; undefined where it has none. */
  turn: string | undefined
  folder: string
  prompt: string
  answer: string
  /** The file that has the answer, of a program that does not give it, or gives all texts of the turn. */
  transcript: string | undefined
  /** All texts of the turn. */
  texts: string
}

/**
 * Events by the names of the programs: Claude Code, Codex and VS Code (code.claude.com/docs/en/hooks,
 * developers.openai.com/codex/hooks, code.visualstudio.com/docs/agent-customization/hooks), Gemini CLI
 * (geminicli.com/docs/hooks/reference), Cursor (cursor.com/docs/hooks).
 */
const kinds: Readonly<Record<string, HookEvent['kind']>> = {
  SessionStart: 'begin',
  UserPromptSubmit: 'prompt',
  Stop: 'end',
  BeforeAgent: 'prompt',
  AfterAgent: 'end',
  sessionStart: 'begin',
  beforeSubmitPrompt: 'prompt',
  afterAgentResponse: 'answer',
  stop: 'end',
}

/** Reads the input of a hook; what a program's version does not send is empty. */
export function readHookEvent(input: Readonly<Record<string, unknown>>): HookEvent {
  const text = (...names: string[]): string =>
    names
      .map(name => input[name])
      .find(value => typeof value === 'string' && value !== '') as string
  const name = text('hook_event_name', 'hookEventName') ?? ''
  const roots: unknown = input['workspace_roots']
  const kind = kinds[name] ?? 'other'
  // What subagents are asked was written by a model; a session that is resumed has its beginning in it.
  const isLeftOut = 'agent_id' in input || (kind === 'begin' && input['source'] === 'resume')
  return {
    kind: isLeftOut ? 'other' : kind,
    name,
    session: text('session_id', 'sessionId', 'conversation_id') ?? '',
    turn: text('prompt_id', 'turn_id', 'generation_id'),
    folder: text('cwd') ?? (Array.isArray(roots) ? String(roots[0] ?? '') : ''),
    prompt: text('prompt') ?? '',
    answer: text('last_assistant_message', 'text') ?? '',
    transcript: text('transcript_path'),
    texts: text('prompt_response') ?? '',
  }
}

/**
 * Writes what a program takes from a hook's standard output.
 *
 * @param context is put before the model; none is said in the program's own way
 */
export function writeHookAnswer(
  client: string,
  { kind, name }: HookEvent,
  context: string | undefined,
): string {
  if (client === 'cursor') {
    return JSON.stringify({
      ...(kind === 'prompt' && { continue: true }),
      ...(context !== undefined && { additional_context: context }),
    })
  }
  if (context === undefined) return ''
  return JSON.stringify({
    // Copilot CLI reads the same file of hooks as VS Code, and takes the context from here.
    ...(client === 'vscode' && { additionalContext: context }),
    hookSpecificOutput: { hookEventName: name, additionalContext: context },
  })
}
