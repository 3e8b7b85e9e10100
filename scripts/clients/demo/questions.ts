/** A question asked months later, in words other than those of the conversation. */
export type DemoQuestion = {
  text: string
  /** What makes the answer hard to find. */
  takes: string
  /** The id of the turn that answers it; it must be among the first three results. */
  answerTurnId: string
  /** The id of a turn with an outdated answer; the current answer must rank above it. */
  outdatedTurnId?: string
}

/** `fillDates` replaces the dates in braces. */
export const questions: readonly DemoQuestion[] = [
  {
    text: 'Which nuts make me ill?',
    takes: 'a fact, eight months old',
    answerTurnId: 'allergy',
  },
  {
    text: 'What is my current address?',
    takes: 'an update: the newest answer is right',
    answerTurnId: 'new-address',
    outdatedTurnId: 'old-address',
  },
  {
    text: 'What was I worried about in {month, 5 months ago}?',
    takes: 'a time that is only in the date of a memory',
    answerTurnId: 'cat-worry',
  },
  {
    text: 'Who gives me music lessons?',
    takes: "a person's name",
    answerTurnId: 'cello-teacher',
  },
  {
    text: "What is the name of Tinta's vet?",
    takes: 'a name, by way of another name',
    answerTurnId: 'vet',
  },
  {
    text: 'Which exercise did you suggest for my knee?',
    takes: 'what the assistant said, not the user',
    answerTurnId: 'knee-advice',
  },
  {
    text: 'Where in Slovenia did you say Priya and I should stay?',
    takes: 'a recommendation',
    answerTurnId: 'trip-advice',
  },
  {
    text: 'What was KV-70418-R again?',
    takes: 'an exact order number',
    answerTurnId: 'order',
  },
  {
    text: 'How fast was I in the marathon?',
    takes: 'a number, with a goal and a result',
    answerTurnId: 'marathon-result',
    outdatedTurnId: 'marathon-goal',
  },
  {
    text: 'When is the help centre launching now?',
    takes: 'a date that was moved',
    answerTurnId: 'deadline-new',
    outdatedTurnId: 'deadline-old',
  },
  {
    text: 'Where do I buy my coffee these days?',
    takes: 'an update, after a place has closed',
    answerTurnId: 'coffee-new',
    outdatedTurnId: 'coffee-old',
  },
  {
    text: 'What was the name of the hotel in Cádiz?',
    takes: 'asked in English, said in Spanish',
    answerTurnId: 'hotel',
  },
]

/** Nothing in the conversation is related to it: the right answer is no memory. */
export const unanswerableQuestion = 'How do I tune the carburettor of an old motorbike?'

/** The next turn of the user, for which `POST /v1/memory/prepare` builds a context. */
export const nextUserTurn =
  "Tinta's next appointment is coming up. What should I tell the vet about her kidneys, her weight and what we have changed?"
