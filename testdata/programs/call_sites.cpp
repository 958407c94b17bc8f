// Writes from functions of C++ in every form. Each says by its offset where it stands: the line in main and its own.
#include <algorithm>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

static int fd;
#define WRITE(root) ((void)!pwrite(fd, "x", 1, (root) * 100000L + __LINE__))
// Something is left to do, so that the call above is a call.
#define NO_JUMP asm volatile("" ::: "memory")
#define NOINLINE __attribute__((noinline))

namespace shop {
struct Base {
	virtual ~Base() = default;
	virtual void sell(long root) = 0;
};

struct Book : Base {
	NOINLINE explicit Book(long root) : price(root)
	{
		WRITE(root);
		NO_JUMP;
	}
	NOINLINE ~Book() override
	{
		WRITE(price);
		NO_JUMP;
	}
	NOINLINE void sell(long root) override
	{
		WRITE(root);
		NO_JUMP;
	}
	NOINLINE Book &operator+=(long root)
	{
		WRITE(root);
		NO_JUMP;
		return *this;
	}
	long price;
};

template <typename T> struct Shelf {
	std::vector<T> things;
	NOINLINE void put(T thing, long root)
	{
		WRITE(root);
		things.push_back(thing);
	}
	// Becomes a part of its caller.
	inline __attribute__((always_inline)) void count(long root)
	{
		WRITE(root);
		things.pop_back();
	}
};
} // namespace shop

NOINLINE static void called(const std::function<void(long)> &function, long root)
{
	function(root);
	WRITE(root);
	NO_JUMP;
}

NOINLINE static int thrown(long root)
{
	try {
		throw std::string("sold");
	} catch (const std::string &) {
		WRITE(root);
	}
	return 1;
}

int main(int, char **arguments)
{
	shop::Shelf<int> numbers;
	shop::Shelf<std::string> words;
	std::vector<long> prices = {3, 1, 2};
	fd = open(arguments[1], O_RDWR | O_CREAT, 0600);
	for (int i = 0; i < 100; i++) {
		WRITE(__LINE__);
		long book_line = __LINE__ + 1;
		std::unique_ptr<shop::Base> book(new shop::Book(book_line));
		book->sell(__LINE__);
		dynamic_cast<shop::Book &>(*book) += __LINE__;
		numbers.put(1, __LINE__);
		words.put("one", __LINE__);
		numbers.count(__LINE__);
		words.count(__LINE__);
		called([](long root) { WRITE(root); NO_JUMP; }, __LINE__);
		std::for_each(prices.begin(), prices.end(), [](long) { WRITE(0L); });
		thrown(__LINE__);
		dynamic_cast<shop::Book &>(*book).price = __LINE__ + 1;
		book.reset();
	}
	return 0;
}
