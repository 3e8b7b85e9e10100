import type { TextTest } from '#shared/search/index/slot-store.ts'
import { statementsAndNotes } from '#shared/search/profile/find-statements.ts'
import { alternativesOf, patternOf, wholeWords } from '#shared/search/languages/languages.ts'
import {
  isAsking,
  isImpersonalRequest,
  isImpersonalTask,
  isPersonal,
  isProfileNote,
  isSmallTalk,
  statesPreference,
} from '#shared/search/query/sentence-kinds.ts'
import { splitSentences } from '#shared/search/query/split-sentences.ts'
import { parseSpeakerPrefix } from '#shared/search/words/index-terms.ts'
import { foldText } from '#shared/search/words/writing-systems.ts'

const actionRequest = new RegExp(`^${wholeWords(alternativesOf('actionRequests'))}`, 'i')

const endsWithQuestion = (text: string): boolean => /[?？؟][\p{P}\s]{0,5}$/u.test(text.slice(-6))

const endsStatement = patternOf('endsStatement')

const tests = {
  /** Says that something holds no longer. */
  endsStatement: (text: string) => endsStatement.test(foldText(text)),
  endsWithQuestion,
  isAsking,
  isImpersonalRequest,
  isProfileNote,
  statesPreference,
  /** One question and no request: requests ("Can you plan a trip?") state plans. */
  onlyAsks: (text: string) => splitSentences(text).length === 1 && !actionRequest.test(text),
  /** A question about the world, or a task, without the name of a speaker. */
  asksOfWorld: (text: string) =>
    !parseSpeakerPrefix(text) &&
    (isImpersonalRequest(text) || (endsWithQuestion(text) && !isPersonal(text))),
  /** Says what lasts of a person. */
  statesLasting: (text: string) => statementsAndNotes(text).length > 0,
  tellsOfPerson: (text: string) => isPersonal(text) || isProfileNote(text),
  /** Neither asks nor gives a task. */
  states: (text: string) => !isAsking(text) && !isSmallTalk(text) && !isImpersonalTask(text),
} satisfies Record<string, TextTest['passes']>

/** What the ranking asks of the texts of memories; each text is read once for each test. */
export const textTests = Object.fromEntries(
  Object.entries(tests).map(([name, passes], number): [string, TextTest] => [
    name,
    { number, passes },
  ]),
) as Record<keyof typeof tests, TextTest>
