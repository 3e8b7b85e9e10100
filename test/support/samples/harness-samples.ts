/** What the person says in each sample. */
export const personsWords = 'Where does the login code live? I moved it last week.'

/** Messages as programs send them, by program, each with the person's words in it. */
export const samplesWithWords: Record<string, string> = {
  'our own profile': `<memory_profile>
What the user has said in earlier conversations, word for word, with the day it was first said.
Places:
- I live in Porto. (2025-03-01)
</memory_profile>

${personsWords}`,
  'Claude Code, reminder before the words': `<system-reminder>
As you answer the user's questions, you can use the following context:
# claudeMd
Codebase instructions: use tabs. \`\`\`
</system-reminder>
${personsWords}`,
  'Claude Code, reminder behind the words': `${personsWords}
<system-reminder>
The TodoWrite tool hasn't been used recently.
</system-reminder>`,
  'Claude Code, a short reminder': `<system-reminder>Plan mode is active.</system-reminder>\n${personsWords}`,
  'Claude Code, command with arguments': `<command-message>review is running…</command-message>
<command-name>/review</command-name>
<command-args>${personsWords}</command-args>`,
  'Claude Code, message while tools run': `<system-reminder>
The user sent the following message:
${personsWords}

Please address this message and continue with your tasks.
</system-reminder>`,
  'Claude Code, editor': `<ide_opened_file>The user opened the file /src/login.ts in the IDE.</ide_opened_file>
${personsWords}`,
  'Claude Code, budget': `<total_tokens>180000 tokens left</total_tokens>\n${personsWords}`,
  'Claude Code, interrupted': `[Request interrupted by user]\n${personsWords}`,
  'Codex, environment': `<environment_context>
  <cwd>/home/me/shop</cwd>
  <approval_policy>on-request</approval_policy>
</environment_context>

${personsWords}`,
  'Codex, AGENTS.md': `# AGENTS.md instructions for /home/me/shop

<INSTRUCTIONS>
Use tabs.
</INSTRUCTIONS>

${personsWords}`,
  'Codex, older AGENTS.md': `<user_instructions>\n\nUse tabs.\n\n</user_instructions>\n\n${personsWords}`,
  'Codex in an editor': `# Context from my IDE setup:

## Open tabs:
- login.ts: src/login.ts

## My request for Codex:
${personsWords}`,
  'Gemini CLI': `<session_context>
This is the Gemini CLI. Today's date is Sunday.
Directory Structure: src/
</session_context>
${personsWords}`,
  Cursor: `<additional_data>
Below are some potentially helpful pieces of information.
<current_file>
Path: src/login.ts
</current_file>
</additional_data>

<user_query>
${personsWords}
</user_query>`,
  Copilot: `<attachments>
<attachment id="src/login.ts">
export const login = 1
</attachment>
</attachments>
<reminderInstructions>
Keep going until it is solved.
</reminderInstructions>
<userRequest>
${personsWords}
</userRequest>`,
  'Cline, Roo Code': `<task>
${personsWords}
</task>

<environment_details>
# VSCode Visible Files
src/login.ts
</environment_details>`,
  'Open WebUI, retrieval': `### Task:
Respond to the user query using the provided context, incorporating inline citations in the format [id].

### Guidelines:
- If you don't know the answer, clearly state that.

<context>
<source id="1">The bridge is red.</source>
</context>

<user_query>
${personsWords}
</user_query>`,
  'Open WebUI, retrieval, words behind': `### Task:
Respond to the user query using the provided context, incorporating inline citations in the format [id].

<context>
<source id="1">The bridge is red.</source>
</context>

${personsWords}`,
  'LibreChat, files': `The user has attached a file to the conversation:
<files>
<file>
<filename>bridge.txt</filename>
</file>
</files>

A semantic search was executed with the user's message as the query.

<context>
The bridge is red.
</context>

${personsWords}`,
  LobeChat: `<!-- SYSTEM CONTEXT (NOT PART OF USER QUERY) -->
<context.instruction>following part contains context information</context.instruction>
<!-- END SYSTEM CONTEXT -->
${personsWords}`,
  'LangChain, question last': `Use the following pieces of context to answer the question at the end. If you don't know the answer, just say that you don't know.

The bridge is red. It was painted in May.

Question: ${personsWords}
Helpful Answer:`,
  'LangChain, question first': `You are an assistant for question-answering tasks. Use three sentences maximum.
Question: ${personsWords}
Context: The bridge is red. It was painted in May.
Answer:`,
  LlamaIndex: `Context information is below.
---------------------
The bridge is red. It was painted in May.
---------------------
Given the context information and not prior knowledge, answer the query.
Query: ${personsWords}
Answer: `,
  'context and question': `Context:
${'The bridge is red. It was painted in May by two brothers.\n'.repeat(8)}
Question: ${personsWords}`,
  'context in an element': `<context>\nThe bridge is red.\n</context>\n\n${personsWords}`,
  'documents in elements': `<document index="1">
<source>bridge.txt</source>
The bridge is red.
</document>
<document index="2">
It was painted in May.
</document>
${personsWords}`,
  'instructions on the same line': `You are a friendly assistant. Answer in at most two sentences. User question: ${personsWords}`,
  'JSON wrapper': JSON.stringify({ locale: 'en', user: { id: 7 }, question: personsWords }),
  'a program that nobody knows': `<acme_state version="2">
cart: empty
</acme_state>
${personsWords}`,
}

/** Messages in a user's name that hold nothing of a person. */
export const samplesWithoutWords: Record<string, string> = {
  'Claude Code, reminder': '<system-reminder>\nThe file notes.txt was changed.\n</system-reminder>',
  'Claude Code, command': `<command-message>init is analyzing your codebase…</command-message>
<command-name>/init</command-name>`,
  'Claude Code, output of a command':
    '<local-command-stdout>Set model to sonnet</local-command-stdout>',
  'Claude Code, shell': '<bash-input>npm test</bash-input>',
  'Claude Code, policy': '<policy_spec>\n# Bash prefix detection\n</policy_spec>',
  'Claude Code, continued session': `This session is being continued from a previous conversation that ran out of context. The conversation is summarized below:
Analysis: the user wants a bridge.`,
  Codex: '<environment_context>\n  <cwd>/home/me</cwd>\n</environment_context>',
  'Codex, AGENTS.md': `# AGENTS.md instructions for /home/me

<INSTRUCTIONS>
Use tabs.
</INSTRUCTIONS>`,
  'Gemini CLI': `This is the Gemini CLI. We are setting up the context for our chat.
Today's date is Sunday.`,
  'Cline, Roo Code': `[ERROR] You did not use a tool in your previous response! Please retry with a tool use.`,
  aider: 'I have *added these files to the chat* so you can go ahead and edit them.\n\nlogin.ts',
  'retrieval alone': '<context>\nThe bridge is red.\n</context>',
}

/** Samples whose wrapping no known program writes: they are stored as they were sent. */
export const samplesOfNoProgram: ReadonlySet<string> = new Set([
  'LangChain, question last',
  'LangChain, question first',
  'LlamaIndex',
  'context and question',
  'context in an element',
  'documents in elements',
  'instructions on the same line',
  'JSON wrapper',
  'a program that nobody knows',
  'retrieval alone',
])
