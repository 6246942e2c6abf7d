// The greatest or least element of each row, and its place. Of equal ones the first, and of NaNs
// too. A variant defines
//   A          the dtype of the tensor
//   BETTER     whether an element `a` is better than the best so far, `t`; OpenCL C for vectors
//   START      what no element is worse than
//   PLACES     if elements are the best of parts, whose places another tensor has
#include "rows.cl"

// A comparison of vectors makes integers of the size of their numbers.
#define place_f32 int
#define place_i64 long
#define place_i32 int
#define place_bool int

#ifdef ON_CPU
typedef JOIN(JOIN(place_, NUMBER), 16) WidePlace;
#define COUNT_UP (WidePlace)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define SPREAD_PLACES(value, some) vstore16(value, 0, some)
#else
typedef JOIN(place_, NUMBER) WidePlace;
#define COUNT_UP 0
#define SPREAD_PLACES(value, some) (some)[0] = (value)
#endif
typedef JOIN(place_, NUMBER) Place;

READER(read_a, A)

// Whether a pair of an element and its place comes before another.
bool before(Number a, Place place, Number t, Place other) {
  if (other < 0) return place >= 0;
  if (place < 0) return false;
  const bool better = BETTER, same = a == t || (a != a && t != t);
  return same ? place < other : better;
}

// The best pair of a work item's, which it leaves in the first place of both.
void best_of_lanes(Number* values, Place* places) {
  for (int i = 1; i < WIDTH; ++i) {
    if (before(values[i], places[i], values[0], places[0])) {
      values[0] = values[i];
      places[0] = places[i];
    }
  }
}

// Part `p` of a row's parts has the elements from n * p / parts on.
kernel void arg(long count, long n, long parts, global JOIN(memory_, A) * values, long values_begin,
                global long* places, long places_begin, global const JOIN(memory_, A) * in,
                long in_begin, global const long* known, long known_begin) {
  local Number shared_values[GROUP];
  local Place shared_places[GROUP];
  const long jobs = count * parts;
  EACH_JOB(job, jobs) {
    const long row = min(job, jobs - 1) / parts, part = min(job, jobs - 1) % parts;
    const long begin = n * part / parts, end = n * (part + 1) / parts;
    const long length = job < jobs ? end - begin : 0;
    global const JOIN(memory_, A)* from = in + in_begin + row * n + begin;
    Wide t = (Wide)(START);
    WidePlace where = (WidePlace)(-1);
    EACH_PLACE(k, length) {
      const Wide a = read_a(from, k, length - k, START);
      const WidePlace place = (WidePlace)((Place)k) + COUNT_UP;
      // A lane's first element is taken as it is: nothing is better than START.
      const WidePlace take = ((where < 0) & (place < (WidePlace)((Place)length))) | (BETTER);
      t = take ? a : t;
      where = take ? place : where;
    }
    Number best[WIDTH];
    Place best_place[WIDTH];
    SPREAD(t, best);
    SPREAD_PLACES(where, best_place);
    best_of_lanes(best, best_place);
#ifndef ON_CPU
    const int item = get_local_id(0);
    shared_values[item] = best[0];
    shared_places[item] = best_place[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_ = TEAM / 2; half_ > 0; half_ /= 2) {
      if (LANE < half_ && before(shared_values[item + half_], shared_places[item + half_],
                                 shared_values[item], shared_places[item])) {
        shared_values[item] = shared_values[item + half_];
        shared_places[item] = shared_places[item + half_];
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    best[0] = shared_values[item];
    best_place[0] = shared_places[item];
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    if (LEADS(job, jobs)) {
      const long place = begin + best_place[0];
#ifdef VALUES
      JOIN(store_, A)(values + values_begin, job, best[0]);
#endif
#ifdef PLACES
      places[places_begin + job] = known[known_begin + row * n + place];
#else
      places[places_begin + job] = place;
#endif
    }
  }
}
